//! Norms with float results, for weights that are floats.

use crate::number::Lanes;
use crate::number::bits::{self, INFINITE};
use crate::number::root::sqrt_f32;
use crate::quant::activations::Norm;

/// Writes fl(fl(xᵢ · gᵢ) · fl(1 / r)), with r the root mean square as in [`crate::quant::activations`], or x itself
/// without a norm. If a product or r is not finite, returns false and writes zeros.
pub(super) fn floats(x: &[f32], norm: Option<Norm<'_>>, out: &mut [f32]) -> bool {
    let mut root = 1.0;
    for (out, &x) in out.iter_mut().zip(x) {
        *out = x;
    }
    if let Some(norm) = norm {
        let mut lanes = Lanes::<f32>::new();
        lanes.squares(x);
        root = sqrt_f32(lanes.total() / x.len() as f32 + norm.eps);
        for (out, &gain) in out.iter_mut().zip(norm.gains) {
            *out *= gain;
        }
    }
    let largest = out.iter().fold(0, |max, &y| bits::magnitude(y).max(max));
    if largest >= INFINITE || !root.is_finite() {
        out.fill(0.0);
        return false;
    }
    // A root of 0 belongs to zeros, which stay zeros. No root is so small that its reciprocal is not finite.
    if norm.is_some() && root > 0.0 {
        let factor = 1.0 / root;
        out.iter_mut().for_each(|out| *out *= factor);
    }
    true
}
