//! The weights that a run updates, and the moments of their gradients: as floats, or in codes of 4.2 bytes in all.

use rayon::prelude::*;
use tercet_core::number::counter;
use tercet_core::train::{
    AdamW, LEAN_BLOCK, LeanBlock, LeanSecond, Tensor, Update, lean_codes, lean_weights,
};

use super::moments::{First, Moments, Scales, TensorSecond};

/// The random stream for rounding.
const ROUNDING: u32 = 4;
/// Weights that a thread updates at a time.
const PIECE: usize = 1 << 14;

/// Weights of a run, in a file's order. A tensor's are whole blocks: its rows divide into ternary blocks of 256.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Weights {
    /// As they are.
    Full(Vec<f32>),
    /// As in a [`LeanBlock`]: codes, and an exponent per block.
    Lean(Vec<i16>, Vec<i8>),
}

impl Weights {
    /// Returns memory for so many weights, and none of them yet.
    pub(super) fn with_capacity(values: usize, lean: bool) -> Self {
        match lean {
            false => Self::Full(Vec::with_capacity(values)),
            true => Self::Lean(
                Vec::with_capacity(values),
                Vec::with_capacity(values.div_ceil(LEAN_BLOCK)),
            ),
        }
    }

    /// Adds a tensor's weights.
    pub(super) fn push(&mut self, values: &[f32]) {
        match self {
            Self::Full(all) => all.extend_from_slice(values),
            Self::Lean(codes, exponents) => {
                let before = codes.len();
                codes.resize(before + values.len(), 0);
                let own = codes[before..].par_chunks_mut(LEAN_BLOCK);
                let blocks = values.par_chunks(LEAN_BLOCK).zip(own);
                exponents.par_extend(blocks.map(|(values, codes)| lean_codes(values, codes)));
            }
        }
    }

    /// Returns the number of weights.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Full(values) => values.len(),
            Self::Lean(codes, _) => codes.len(),
        }
    }

    /// Returns a tensor's weights, which are written into `scratch` if they are codes.
    pub(super) fn of<'w>(&'w self, tensor: &Tensor, scratch: &'w mut Vec<f32>) -> &'w [f32] {
        match self {
            Self::Full(values) => tensor.of(values),
            Self::Lean(..) => {
                self.copy(tensor, scratch);
                scratch
            }
        }
    }

    /// Replaces the content of `scratch` by a tensor's weights.
    pub(super) fn copy(&self, tensor: &Tensor, scratch: &mut Vec<f32>) {
        scratch.resize(tensor.len(), 0.0);
        let (codes, exponents) = match self {
            Self::Full(values) => return scratch.copy_from_slice(tensor.of(values)),
            Self::Lean(codes, exponents) => (tensor.of(codes), exponents),
        };
        let exponents = &exponents[tensor.first / LEAN_BLOCK..];
        let blocks = codes.par_chunks(LEAN_BLOCK).zip(exponents);
        blocks
            .zip(scratch.par_chunks_mut(LEAN_BLOCK))
            .for_each(|((codes, &exponent), weights)| lean_weights(codes, exponent, weights));
    }

    /// Returns the values of adapters, which are always floats.
    pub(super) fn floats(&self) -> &[f32] {
        match self {
            Self::Full(values) => values,
            Self::Lean(..) => unreachable!("adapters are floats"),
        }
    }

    /// Returns the bytes of so many weights.
    pub(super) const fn bytes(values: usize, lean: bool) -> usize {
        match lean {
            false => values.saturating_mul(size_of::<f32>()),
            true => values
                .saturating_mul(size_of::<i16>())
                .saturating_add(values.div_ceil(LEAN_BLOCK)),
        }
    }
}

/// An update of tensors, the same for all of a step.
pub(super) struct Step {
    pub(super) adamw: AdamW,
    pub(super) update: Update,
    pub(super) seed: u64,
    /// Its number, from 0.
    pub(super) step: u64,
}

impl Step {
    /// Updates a tensor's weights and moments from its sums of gradients, by the threads of the current pool.
    pub(super) fn take(
        &self,
        tensor: &Tensor,
        (sums, unit): (&[i64], f32),
        (weights, moments): (&mut Weights, &mut Moments),
    ) {
        let decays = !tensor.part.is_gains();
        // The processor's square root is rounded like core's.
        let (adamw, update, root) = (&self.adamw, &self.update, f32::sqrt);
        let values = weights.len() as u64;
        // Every weight of every step has its own draw.
        let draws = |index: usize| {
            let place = tensor.first + index * LEAN_BLOCK;
            let place = self.step.wrapping_mul(values).wrapping_add(place as u64);
            move |at: usize| counter(self.seed, ROUNDING, place + at as u64)
        };
        let second = moments.second.of(tensor, self, (sums, unit));
        let (blocks, least) = (tensor.first / LEAN_BLOCK, PIECE / LEAN_BLOCK);
        match (weights, &mut moments.first, second) {
            (Weights::Full(weights), First::Full(first), TensorSecond::Full(second)) => tensor
                .of_mut(weights)
                .par_chunks_mut(PIECE)
                .zip(sums.par_chunks(PIECE))
                .zip(tensor.of_mut(first).par_chunks_mut(PIECE))
                .zip(second.par_chunks_mut(PIECE))
                .for_each(|(((weights, sums), first), second)| {
                    let moments = (first, second);
                    adamw.update(root, update, (sums, unit), decays, weights, moments);
                }),
            (Weights::Full(weights), First::Full(first), TensorSecond::Factored(factors)) => {
                let given = AdamW {
                    beta2: 1.0,
                    ..*adamw
                };
                tensor
                    .of_mut(weights)
                    .par_chunks_mut(LEAN_BLOCK)
                    .zip(sums.par_chunks(LEAN_BLOCK))
                    .zip(tensor.of_mut(first).par_chunks_mut(LEAN_BLOCK))
                    .enumerate()
                    .with_min_len(least)
                    .for_each(|(index, ((weights, sums), first))| {
                        let mut second = factors.block(index);
                        let moments = (first, &mut second[..weights.len()]);
                        given.update(root, update, (sums, unit), decays, weights, moments);
                    });
            }
            (Weights::Lean(codes, exponents), First::Lean(first, scales), second) => {
                let parts = tensor
                    .of_mut(codes)
                    .par_chunks_mut(LEAN_BLOCK)
                    .zip(&mut exponents[blocks..])
                    .zip(tensor.of_mut(first).par_chunks_mut(LEAN_BLOCK))
                    .zip(&mut scales[blocks..])
                    .zip(sums.par_chunks(LEAN_BLOCK));
                let take = |index: usize, parts: LeanParts<'_>, second: LeanSecond<'_>| {
                    let ((((weights, exponent), first), scales), sums) = parts;
                    let block = LeanBlock {
                        weights,
                        exponent,
                        first,
                        second,
                        scales,
                    };
                    adamw.update_lean(root, update, (sums, unit), decays, block, draws(index));
                };
                match second {
                    TensorSecond::Lean(second) => parts
                        .zip(second.par_chunks_mut(LEAN_BLOCK))
                        .enumerate()
                        .with_min_len(least)
                        .for_each(|(index, (parts, second))| {
                            take(index, parts, LeanSecond::Codes(second));
                        }),
                    TensorSecond::Factored(factors) => parts
                        .enumerate()
                        .with_min_len(least)
                        .for_each(|(index, parts)| {
                            take(index, parts, LeanSecond::New(&factors.block(index)));
                        }),
                    TensorSecond::Full(_) => unreachable!("moments have the form of the weights"),
                }
            }
            _ => unreachable!("moments have the form of the weights"),
        }
    }
}

/// A block's codes of weights, their exponent, codes of first moments, scales, and sums of gradients.
type LeanParts<'p> = (
    (((&'p mut [i16], &'p mut i8), &'p mut [i8]), &'p mut Scales),
    &'p [i64],
);
