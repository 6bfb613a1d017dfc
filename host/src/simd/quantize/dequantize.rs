//! Codes back to values.

use super::lanes::Lanes;
use super::stats::VECTORS;
use crate::simd::stores::{LINE, Stores};

/// Writes `fl((code − zero_point) · scale)` for each code.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn dequantize<S: Lanes>(
    codes: &[i8],
    zero_point: i8,
    scale: f32,
    out: &mut [f32],
    stores: Stores,
) {
    assert_eq!(codes.len(), out.len());
    let step = VECTORS * S::WIDTH;
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
    // SAFETY: the set runs here; each step has as many codes and values, on a line's boundary where they stream.
    unsafe {
        let zero_point = S::splat(i32::from(zero_point) as u32);
        let scale = S::splat(scale.to_bits());
        let steps = codes.chunks_exact(step).zip(out.chunks_exact_mut(step));
        for (codes, out) in steps {
            for at in (0..step).step_by(S::WIDTH) {
                let steps = S::steps(codes.as_ptr().add(at), zero_point);
                let values = S::multiply(steps, scale);
                match stores {
                    Stores::Cached => S::store_values(values, out.as_mut_ptr().add(at)),
                    Stores::Streaming => S::stream_values(values, out.as_mut_ptr().add(at)),
                }
            }
        }
    }
}

/// The same in plain code.
#[inline(always)]
pub(super) fn one_by_one(codes: &[i8], zero_point: i8, scale: f32, out: &mut [f32]) {
    for (code, value) in codes.iter().zip(out) {
        *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
    }
}
