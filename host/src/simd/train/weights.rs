//! The gradient of a matrix with products of pairs: two rows at a time; an instruction multiplies a column's two codes
//! by an output's two and adds.

use tercet_core::train::{Inputs, WEIGHT_CEILING, WEIGHT_FLOOR, code, exponent};

use super::GradientScratch;

/// Outputs that are quantized together, because they are adjacent.
const STRIP: usize = 16;
/// Outputs that are multiplied with a vector of inputs while it is in a register.
const OUTPUTS: usize = 4;
/// Vectors of inputs that are multiplied with them.
const VECTORS: usize = 2;

/// A set's products of pairs of int16.
pub(super) trait PairProducts: Copy {
    /// Columns per vector.
    const COLUMNS: usize;
    /// Sums of columns, or pairs of codes.
    type Vector: Copy;

    /// Returns zeros.
    fn zero(self) -> Self::Vector;
    /// Loads the first pairs of a slice, which has at least [`PairProducts::COLUMNS`].
    fn load(self, pairs: &[i32]) -> Self::Vector;
    /// Adds the products of pairs of each column with one pair.
    fn add(self, sums: Self::Vector, pairs: Self::Vector, pair: i32) -> Self::Vector;
    /// Writes sums to the beginning of a slice, as [`PairProducts::load`].
    fn store(self, sums: Self::Vector, to: &mut [i32]);
}

/// Returns two codes as a pair.
#[inline(always)]
const fn pair(first: i8, second: i8) -> i32 {
    (first as i32 & 0xFFFF) | (second as i32) << 16
}

/// As [`TrainEngine::weight_gradient`](tercet_core::engine::TrainEngine::weight_gradient).
#[inline(always)]
pub(super) fn gradient<P: PairProducts>(
    products: P,
    dy: &[f32],
    x: &Inputs<'_>,
    room: &mut GradientScratch,
    sums: &mut [i64],
) -> bool {
    let (rows, cols) = (x.scales.len(), x.cols());
    if rows == 0 || cols == 0 {
        return true;
    }
    let outputs = dy.len() / rows;
    let padded = cols.next_multiple_of(P::COLUMNS * VECTORS);
    let groups: Vec<_> = x.groups().collect();
    // The pairs of each group start again.
    let first_pairs: Vec<usize> = groups
        .iter()
        .scan(0, |next, group| {
            let first = *next;
            *next += group.len().div_ceil(2);
            Some(first)
        })
        .collect();
    let all_pairs: usize = groups.iter().map(|group| group.len().div_ceil(2)).sum();
    // No zeros are needed, because all of it is written.
    room.inputs.resize(all_pairs * padded, 0);
    for (group, &first) in groups.iter().zip(&first_pairs) {
        let codes = &x.codes[group.start * cols..group.end * cols];
        let to = room.inputs[first * padded..].chunks_exact_mut(padded);
        for (rows, to) in codes.chunks(2 * cols).zip(to) {
            let (one, other) = rows.split_at(cols);
            to[cols..].fill(0);
            if other.is_empty() {
                for (to, &one) in to.iter_mut().zip(one) {
                    *to = pair(one, 0);
                }
            } else {
                for ((to, &one), &other) in to.iter_mut().zip(one).zip(other) {
                    *to = pair(one, other);
                }
            }
        }
    }
    room.pairs.resize(all_pairs * STRIP, 0);
    room.sums.resize(OUTPUTS * padded, 0);
    room.partial.resize(OUTPUTS * padded, 0);
    let mut within = true;
    let mut shifts = vec![[0u32; STRIP]; groups.len()];
    for first in (0..outputs).step_by(STRIP) {
        let width = STRIP.min(outputs - first);
        for ((group, &first_pair), shifts) in groups.iter().zip(&first_pairs).zip(&mut shifts) {
            let row = |row: usize| &dy[row * outputs + first..][..width];
            let mut largest = [0u32; STRIP];
            for at in group.clone() {
                let scale = x.scales[at];
                for (most, &dy) in largest.iter_mut().zip(row(at)) {
                    *most = ((dy * scale).to_bits() & 0x7FFF_FFFF).max(*most);
                }
            }
            let mut factors = [0.0; STRIP];
            for ((factor, shift), &most) in factors.iter_mut().zip(shifts.iter_mut()).zip(&largest)
            {
                let found = exponent(most, WEIGHT_FLOOR).filter(|&found| found <= WEIGHT_CEILING);
                within &= found.is_some();
                let found = found.unwrap_or(WEIGHT_CEILING);
                *factor = f32::from_bits(((127 - found) as u32) << 23);
                *shift = (found - WEIGHT_FLOOR) as u32;
            }
            let to = room.pairs[first_pair * STRIP..].as_chunks_mut::<STRIP>().0;
            let codes_of = |at: usize| {
                let (mut codes, scale) = ([0i8; STRIP], x.scales[at]);
                for ((to, &dy), &factor) in codes.iter_mut().zip(row(at)).zip(&factors) {
                    *to = code(dy * scale, factor);
                }
                codes
            };
            for (at, to) in group.clone().step_by(2).zip(to) {
                let one = codes_of(at);
                let other = if at + 1 < group.end {
                    codes_of(at + 1)
                } else {
                    [0; STRIP]
                };
                for ((to, one), other) in to.iter_mut().zip(one).zip(other) {
                    *to = pair(one, other);
                }
            }
        }
        let pairs = room.pairs.as_chunks::<STRIP>().0;
        for few in (0..width).step_by(OUTPUTS) {
            room.sums.fill(0);
            for ((group, &first_pair), shifts) in groups.iter().zip(&first_pairs).zip(&shifts) {
                let count = group.len().div_ceil(2);
                let inputs = &room.inputs[first_pair * padded..][..count * padded];
                let pairs = &pairs[first_pair..][..count];
                for column in (0..padded).step_by(P::COLUMNS * VECTORS) {
                    let found = block(products, pairs, few, &inputs[column..], padded);
                    for (output, vectors) in found.into_iter().enumerate() {
                        let to = &mut room.partial[output * padded + column..];
                        for (vector, sums) in vectors.into_iter().enumerate() {
                            products.store(sums, &mut to[vector * P::COLUMNS..]);
                        }
                    }
                }
                let sums = room.sums.chunks_exact_mut(padded);
                for ((sums, partial), &shift) in sums
                    .zip(room.partial.chunks_exact(padded))
                    .zip(&shifts[few..])
                {
                    for (sum, &partial) in sums.iter_mut().zip(partial) {
                        *sum += i64::from(partial) << shift;
                    }
                }
            }
            let end = OUTPUTS.min(width - few);
            let to = sums[(first + few) * cols..]
                .chunks_exact_mut(cols)
                .take(end);
            for (to, from) in to.zip(room.sums.chunks_exact(padded)) {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to += from;
                }
            }
        }
    }
    within
}

/// Computes the sums of some outputs and columns over a group. They are below 2³¹: 64 products of 127 · 127.
#[inline(always)]
fn block<P: PairProducts>(
    products: P,
    pairs: &[[i32; STRIP]],
    few: usize,
    inputs: &[i32],
    padded: usize,
) -> [[P::Vector; VECTORS]; OUTPUTS] {
    let mut sums = [[products.zero(); VECTORS]; OUTPUTS];
    for (at, pairs) in pairs.iter().enumerate() {
        let from = &inputs[at * padded..];
        let vectors: [P::Vector; VECTORS] =
            std::array::from_fn(|vector| products.load(&from[vector * P::COLUMNS..]));
        for (sums, &pair) in sums.iter_mut().zip(&pairs[few..]) {
            for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                *sum = products.add(*sum, vector, pair);
            }
        }
    }
    sums
}
