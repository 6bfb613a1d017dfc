//! Bins and patterns of magnitudes: loops that the compiler vectorizes for the set.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::bits;

/// As [`tercet_core::scalar::magnitudes`], for a span and bins that were checked.
#[target_feature(enable = "avx2,bmi1,bmi2,f16c,fma,lzcnt,popcnt")]
pub(in crate::simd) fn magnitudes(values: &[f32], span: MagnitudeSpan, bins: &mut [MagnitudeBin]) {
    crate::simd::magnitudes::count(values, span, bins);
}

/// As [`tercet_core::scalar::read_magnitudes`], for slices of one length.
#[target_feature(enable = "avx2,bmi1,bmi2,f16c,fma,lzcnt,popcnt")]
pub(in crate::simd) fn read_magnitudes(values: &[f32], out: &mut [u32]) {
    for (value, pattern) in values.iter().zip(out) {
        *pattern = bits::magnitude(*value);
    }
}
