//! The gradient of a root-mean-square norm.

use super::power::fixed;
use crate::number::Lanes;
use crate::number::root::sqrt_f32;
use crate::quant::activations::Norm;

/// The unit of gradients of gains, as a power of two.
pub const GAIN_UNIT: i32 = -32;

/// Computes the gradients of rows of a norm yᵢ = xᵢ · gᵢ / r, from those of y.
///
/// With v = fl(1 / r), r from the norm itself, and aᵢ = fl(dyᵢ · gᵢ): dxᵢ = fl(fl(aᵢ − fl(xᵢ · k)) · v), with k =
/// fl(fl(S / n) · fl(v · v)) and S the sum of aᵢ · xᵢ in the order of [`crate::number::lanes`]. It is written to
/// `dx`, or added to it if `adds`. fl(dyᵢ · fl(xᵢ · v)) is added to `gains`, with each term rounded once to units of
/// 2 to the power of [`GAIN_UNIT`].
///
/// `x`, `dy` and `dx` have rows of the gains' length, and so has `scratch`. Returns false if a gain's gradient
/// exceeds 2⁴³ units or is not finite. O(n).
#[inline(always)]
pub fn norm(
    x: &[f32],
    norm: Norm<'_>,
    dy: &[f32],
    (dx, adds): (&mut [f32], bool),
    gains: &mut [i64],
    scratch: &mut [f32],
) -> bool {
    let cols = norm.gains.len().max(1);
    let mut within = true;
    // Not zipped: a zip divides by the rows' length, and the compiler does not know that this is not 0.
    let (mut x, mut dy) = (x.chunks_exact(cols), dy.chunks_exact(cols));
    for dx in dx.chunks_exact_mut(cols) {
        let (Some(x), Some(dy)) = (x.next(), dy.next()) else {
            break;
        };
        let count = cols as f32;
        let mut squares = Lanes::<f32>::new();
        squares.squares(x);
        let inverse = 1.0 / sqrt_f32(squares.total() / count + norm.eps);
        for ((a, &dy), &gain) in scratch.iter_mut().zip(dy).zip(norm.gains) {
            *a = dy * gain;
        }
        let a = scratch.get(..cols).unwrap_or_default();
        let mut products = Lanes::<f32>::new();
        // The lengths are equal. Not `dot`, whose loop would then no longer be inlined in searches.
        let _ = products.add_pairs(a, x, |a, x| a * x);
        let factor = (products.total() / count) * (inverse * inverse);
        for ((dx, &a), &x) in dx.iter_mut().zip(a).zip(x) {
            let own = (a - x * factor) * inverse;
            *dx = if adds { *dx + own } else { own };
        }
        for ((sum, &x), &dy) in gains.iter_mut().zip(x).zip(dy) {
            match fixed(dy * (x * inverse), GAIN_UNIT) {
                Some(term) => *sum = sum.wrapping_add(term),
                None => within = false,
            }
        }
    }
    within
}
