//! Converts codes back to values.

use super::lanes::{Quantizing, VECTORS};
use crate::simd::stores::{LINE, Stores};

/// Writes `fl((code − zero_point) · scale)` for each code.
#[inline(always)]
pub(in crate::simd) fn dequantize<S: Quantizing>(
    set: S,
    codes: &[i8],
    zero_point: i8,
    scale: f32,
    out: &mut [f32],
    stores: Stores,
) {
    assert_eq!(codes.len(), out.len());
    let step = VECTORS * set.lanes();
    let head = match stores {
        Stores::Cached => 0,
        Stores::Streaming => out.as_ptr().align_offset(LINE).min(out.len()),
    };
    let (first, codes) = codes.split_at(head);
    let (first_out, out) = out.split_at_mut(head);
    one_by_one(first, zero_point, scale, first_out);
    let whole = codes.len() / step * step;
    let (codes, rest) = codes.split_at(whole);
    let (out, rest_out) = out.split_at_mut(whole);
    one_by_one(rest, zero_point, scale, rest_out);
    let zero_point = set.splat(i32::from(zero_point));
    let scale = set.pattern(scale.to_bits());
    let steps = codes.chunks_exact(step).zip(out.chunks_exact_mut(step));
    for (codes, out) in steps {
        for at in (0..step).step_by(set.lanes()) {
            // SAFETY: a vector of the step.
            let steps = unsafe { set.steps(codes.as_ptr().add(at), zero_point) };
            let values = set.multiply_f32(steps, scale);
            match stores {
                Stores::Cached => set.write(values, &mut out[at..]),
                // SAFETY: as above; `out` begins on a line's boundary, which steps and vectors keep to.
                Stores::Streaming => unsafe { set.stream_past(values, out.as_mut_ptr().add(at)) },
            }
        }
    }
}

/// Does the same in plain code.
#[inline(always)]
pub(super) fn one_by_one(codes: &[i8], zero_point: i8, scale: f32, out: &mut [f32]) {
    for (code, value) in codes.iter().zip(out) {
        *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
    }
}
