//! Products of layers and many rows of activations, on any engine.

use super::{Digest, linear};
use crate::engine::LinearEngine;
use crate::linear::{I8Sym, Layer, Layout, LinearError, Matrix, Table};
use crate::number::Random;
use crate::scalar::Scalar;

/// Number of bytes of the largest matrix: five rows of a block.
const BYTES: usize = 1050;
/// Largest number of activations: five rows of a block.
const VALUES: usize = 1280;
/// Largest number of rows of weights.
const ROWS: usize = 33;
/// Largest number of rows of activations.
const COUNT: usize = 14;
/// Largest number of f32 outputs: 33 rows by 7.
const OUTPUTS: usize = 231;
/// Largest number of outputs as sums: 33 rows by 5.
const SUMS: usize = 165;
/// Scratch for all of the shapes.
const SCRATCH: usize = 136;

/// Rows and columns of weights, and rows of activations: above and below the sizes of tiles, for layouts that accept
/// any.
const SHAPES: [(usize, usize, usize); 5] =
    [(33, 5, 7), (3, 66, 14), (9, 17, 5), (0, 4, 3), (2, 3, 0)];

/// The same, with columns as a number of blocks.
const BLOCK_SHAPES: [(usize, usize, usize); 2] = [(5, 1, 5), (2, 1, 0)];

/// Every layout and shape.
#[inline(never)]
pub(super) fn run<E: LinearEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    for layout in Layout::ALL {
        let shapes = match layout {
            Layout::Block(_) => BLOCK_SHAPES.as_slice(),
            _ => SHAPES.as_slice(),
        };
        for (seed, &(rows, cols, count)) in (61..).zip(shapes) {
            let cols = match layout {
                Layout::Block(format) => cols * format.len(),
                _ => cols,
            };
            for extreme in [false, true] {
                let mut random = Random::new(seed);
                let mut bytes = [0; BYTES];
                let filled = layout
                    .bytes(rows, cols)
                    .ok()
                    .and_then(|len| bytes.get_mut(..len));
                let Some(bytes) = filled else {
                    // A shape that does not fit is an error in this file.
                    digest.u64(u64::MAX);
                    continue;
                };
                digest.outcome(linear::fill_any(
                    layout,
                    (rows, cols),
                    extreme,
                    &mut random,
                    bytes,
                ));
                let shape = (layout, rows, cols);
                product(
                    engine,
                    shape,
                    bytes,
                    count,
                    extreme,
                    &mut random,
                    &mut digest,
                );
            }
        }
    }
    digest.value()
}

/// Floats, sums of at most five rows of activations, and errors.
#[inline(never)]
fn product<E: LinearEngine>(
    engine: &mut E,
    (layout, rows, cols): (Layout, usize, usize),
    bytes: &[u8],
    count: usize,
    extreme: bool,
    random: &mut Random,
    digest: &mut Digest,
) {
    let mut x = [0i8; VALUES];
    let x = x.get_mut(..count * cols).unwrap_or_default();
    for value in x.iter_mut() {
        *value = match extreme {
            true => 127,
            false => (random.below(255) as i64 - 127) as i8,
        };
    }
    let mut bias = [0; ROWS];
    bias.fill_with(|| (random.next_u64() as i32) >> 18);
    let mut x_scales = [0.0; COUNT];
    for (row, scale) in x_scales.iter_mut().enumerate() {
        *scale = 0.3 * (row + 1) as f32;
    }
    let made = || -> Result<_, LinearError> {
        let weights = Matrix::new(layout, rows, cols, bytes)?;
        let plain = Layer::new(weights);
        let weights = match layout {
            Layout::Block(_) => weights,
            _ => weights.with_scale(0.7)?,
        };
        let bias = bias.get(..rows).unwrap_or_default();
        let biased = Layer::new(weights).with_bias(Table::Words(bias), 0)?;
        Ok((plain, biased, I8Sym::new(x)?))
    };
    let Some((plain, biased, x)) = digest.outcome(made()) else {
        return;
    };
    let mut scratch = [0; SCRATCH];
    let x_scales = x_scales.get(..count).unwrap_or_default();
    // One after the other, so that their outputs are never on the stack together.
    floats(engine, (&plain, &biased), x, x_scales, &mut scratch, digest);
    sums(engine, &biased, x, &mut scratch, digest);
}

#[inline(never)]
fn floats<E: LinearEngine>(
    engine: &mut E,
    (plain, biased): (&Layer<'_>, &Layer<'_>),
    x: I8Sym<'_>,
    x_scales: &[f32],
    scratch: &mut [u32],
    digest: &mut Digest,
) {
    let mut out = [0.0; OUTPUTS];
    let outputs = plain.weights().rows() * x_scales.len();
    let out = out.get_mut(..outputs).unwrap_or_default();
    digest.outcome(engine.matmat(plain, x, x_scales, out, scratch));
    digest.f32s(out);
    digest.outcome(engine.matmat(biased, x, x_scales, out, scratch));
    digest.f32s(out);
    // One scale too few, or one too many.
    let missing = x_scales
        .split_last()
        .map_or([1.0].as_slice(), |(_, rest)| rest);
    digest.outcome(engine.matmat(plain, x, missing, out, scratch));
}

#[inline(never)]
fn sums<E: LinearEngine>(
    engine: &mut E,
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    digest: &mut Digest,
) {
    let (rows, cols) = (layer.weights().rows(), layer.weights().cols());
    let count = (x.len() / cols.max(1)).min(5);
    let Some(Ok(x)) = x.get().get(..count * cols).map(I8Sym::new) else {
        return;
    };
    let mut sums = [0; SUMS];
    let sums = sums.get_mut(..rows * count).unwrap_or_default();
    digest.outcome(engine.sums_many(layer, x, sums, scratch));
    sums.iter().for_each(|&sum| digest.u64(sum as u64));
    // Engines that need scratch, including core's own.
    digest.outcome(Scalar.sums_many(layer, x, sums, &mut []));
    // Not a whole number of rows.
    if let Some(Ok(x)) = x.get().get(1..).map(I8Sym::new) {
        digest.outcome(engine.sums_many(layer, x, sums, scratch));
    }
}
