//! The three forms of a layer's product.

use super::finish::{Exact, Rounded, Scaled};
use super::many::check_scratch;
use super::{I8Sym, Layer, Layout, LinearError, Matrix, Rescale, Sums};
use crate::arch;
use crate::block::Format;

/// Computes the exact sums of a layer, bias included, one per row: Σ w·x, or Σ d·2²⁴·(Σ w·x) over the blocks of
/// GGUF's formats.
///
/// O(rows · cols), with scratch of length [`Matrix::scratch_len`]. |sum| < 2⁶³ always.
///
/// # Errors
/// Those of [`Layer::check`]; [`LinearError::Scratch`].
pub fn sums(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    out: &mut [i64],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    sums_of::<{ u32::MAX }>(layer, x, out, scratch)
}

/// Passes the exact sums of the rows, in order and without a bias, to `out`. It uses the core's best code. Engines
/// without their own code call it.
///
/// O(rows · cols).
///
/// # Errors
/// [`LinearError::Length`] unless there is one activation per column; [`LinearError::Scratch`].
pub fn row_sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> Result<(), LinearError> {
    Layer::new(*matrix).check(x, matrix.rows())?;
    check_scratch(matrix.scratch_len(), scratch.len())?;
    done(arch::sums::<{ u32::MAX }>(matrix, x, scratch, out))
}

/// Does [`sums`] for the layouts in a set.
pub(crate) fn sums_of<const SET: u32>(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    out: &mut [i64],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    layer.check(x, out.len())?;
    check_scratch(layer.weights().scratch_len(), scratch.len())?;
    let mut out = Exact::new(layer, out);
    done(arch::sums::<SET>(layer.weights(), x, scratch, &mut out))
}

/// Computes the product in f32: `fl(fl(f32(sum) · scale) · x_scale)`. The sum is exact, bias included, and rounded
/// once.
///
/// # Errors
/// Those of [`Layer::check`]; [`LinearError::Scratch`].
pub fn matvec(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    x_scale: f32,
    out: &mut [f32],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    matvec_of::<{ u32::MAX }>(layer, x, x_scale, out, scratch)
}

/// Does [`matvec`] for the layouts in a set.
pub(crate) fn matvec_of<const SET: u32>(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    x_scale: f32,
    out: &mut [f32],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    // Only TQ1_0 shares tables between products. Without it the product is inlined here, so that the compiler leaves
    // out what the caller's constants make needless: half of the flash of a call with one scale.
    if Layout::Block(Format::Tq1_0).is_in(SET) {
        return matvec_each_of::<SET, 1>([(layer, out)], x, x_scale, scratch);
    }
    layer.check(x, out.len())?;
    check_scratch(layer.weights().scratch_len(), scratch.len())?;
    let mut out = Scaled::new(layer, x_scale, out);
    done(arch::sums::<SET>(layer.weights(), x, scratch, &mut out))
}

/// Does [`matvec`] for several layers with the same activations, each into its own outputs.
pub(crate) fn matvec_each_of<const SET: u32, const N: usize>(
    products: [(&Layer<'_>, &mut [f32]); N],
    x: I8Sym<'_>,
    x_scale: f32,
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    for (layer, out) in &products {
        layer.check(x, out.len())?;
        check_scratch(layer.weights().scratch_len(), scratch.len())?;
    }
    let mut products =
        products.map(|(layer, out)| (layer.weights(), Scaled::new(layer, x_scale, out)));
    scaled_of::<SET>(&mut products, x, scratch)
}

/// One function body for any number of products.
#[inline(never)]
fn scaled_of<const SET: u32>(
    products: &mut [(&Matrix<'_>, Scaled<'_>)],
    x: I8Sym<'_>,
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    done(arch::sums_each::<SET, _>(products, x, scratch))
}

/// Computes the product in int8, ready for the next layer: [`Rescale::apply`] of each sum, bias included.
///
/// # Errors
/// Those of [`Layer::check`]; [`LinearError::Scratch`]; those of [`Rescale::check`].
pub fn dense(
    layer: &Layer<'_>,
    rescale: &Rescale<'_>,
    x: I8Sym<'_>,
    out: &mut [i8],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    dense_of::<{ u32::MAX }>(layer, rescale, x, out, scratch)
}

/// Does [`dense`] for the layouts in a set.
pub(crate) fn dense_of<const SET: u32>(
    layer: &Layer<'_>,
    rescale: &Rescale<'_>,
    x: I8Sym<'_>,
    out: &mut [i8],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    layer.check(x, out.len())?;
    check_scratch(layer.weights().scratch_len(), scratch.len())?;
    rescale.check(out.len())?;
    let mut out = Rounded::new(layer, rescale, out);
    done(arch::sums::<SET>(layer.weights(), x, scratch, &mut out))
}

const fn done(taken: bool) -> Result<(), LinearError> {
    match taken {
        true => Ok(()),
        false => Err(LinearError::LeftOut),
    }
}

/// Returns the index of the largest value, the lowest of equal ones. Ignores NaN; returns 0 if all are NaN.
pub fn argmax<T: PartialOrd + Copy>(values: &[T]) -> usize {
    let mut best: Option<(usize, T)> = None;
    for (index, &value) in values.iter().enumerate() {
        // NaN does not even compare with itself.
        let number = value.partial_cmp(&value).is_some();
        if number && best.is_none_or(|(_, largest)| value > largest) {
            best = Some((index, value));
        }
    }
    best.map_or(0, |(index, _)| index)
}
