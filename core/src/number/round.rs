//! Rounding to integers, and conversions that saturate, on stable `core` without std.
//!
//! The choice of rounding is part of each format; see the format's own page.

use super::bits;

/// 2²³: from here on every `f32` is an integer.
const WHOLE_F32: f32 = 8_388_608.0;
/// 2⁵²: from here on every `f64` is an integer.
const WHOLE_F64: f64 = 4_503_599_627_370_496.0;
/// The sign bit of an `f64`.
const SIGN_F64: u64 = 1 << 63;

/// Returns `x` rounded to the nearest integer, ties to even, as an `f32`.
///
/// Exact: |x| + 2²³ has no fraction bits, so the addition itself rounds half to even (Rust never changes the rounding
/// mode), and subtracting 2²³ is exact. Values from 2²³ up, infinities and NaN are returned unchanged. The sign
/// stays, also that of zero.
#[inline]
pub fn half_even(x: f32) -> f32 {
    let magnitude = bits::magnitude(x);
    if magnitude >= WHOLE_F32.to_bits() {
        return x;
    }
    let rounded = (f32::from_bits(magnitude) + WHOLE_F32) - WHOLE_F32;
    f32::from_bits(rounded.to_bits() | (x.to_bits() & 0x8000_0000))
}

/// Returns an integer as `f32`, rounded once to nearest even. This is `n as f32`, which takes three times as many
/// instructions on 32-bit machines.
#[inline]
pub const fn nearest_f32(n: i64) -> f32 {
    match cfg!(target_pointer_width = "64") {
        true => n as f32,
        false => by_halves(n),
    }
}

/// Returns `n as f32`, with 32-bit registers.
///
/// Exact: the bits shifted out of the upper 32 bits are below the 24 bits that stay, and only their presence matters.
/// The exponent absorbs the shift, since the result is at most 2⁶³.
#[inline]
const fn by_halves(n: i64) -> f32 {
    let magnitude = n.unsigned_abs();
    let (high, low) = ((magnitude >> 32) as u32, magnitude as u32);
    // Of zeros and bits to shift, one may be 32: with no high half, which is 0 then; or for −2⁶³, where the low half is.
    let zeros = high.leading_zeros();
    let shift = u32::BITS - zeros;
    let lost = low << 1 << (zeros.wrapping_sub(1) & 31);
    let top = high << (zeros & 31) | low >> (shift & 31) | (lost != 0) as u32;
    // Without a multiplication and a comparison of floats, which are function calls without a floating-point unit.
    let bits = (top as f32).to_bits();
    let rounded = f32::from_bits(if bits == 0 { 0 } else { bits + (shift << 23) });
    if n < 0 { -rounded } else { rounded }
}

/// Returns `x` rounded to the nearest integer, ties away from zero (C's `roundf`), as an `f32`.
///
/// Exact: differs from [`half_even`] only if that rounded a tie down, in which case the exact difference is +½.
/// Values from 2²³ up, infinities and NaN are returned unchanged. The sign stays, also that of zero.
#[inline]
pub fn half_away(x: f32) -> f32 {
    let magnitude = bits::magnitude(x);
    if magnitude >= WHOLE_F32.to_bits() {
        return x;
    }
    let magnitude = f32::from_bits(magnitude);
    let even = (magnitude + WHOLE_F32) - WHOLE_F32;
    let up = if magnitude - even == 0.5 { 1.0 } else { 0.0 };
    f32::from_bits((even + up).to_bits() | (x.to_bits() & 0x8000_0000))
}

/// [`half_even`] for `f64`, with 2⁵² in place of 2²³.
#[inline]
pub fn half_even_f64(x: f64) -> f64 {
    let magnitude = x.to_bits() & !SIGN_F64;
    if magnitude >= WHOLE_F64.to_bits() {
        return x;
    }
    let rounded = (f64::from_bits(magnitude) + WHOLE_F64) - WHOLE_F64;
    f64::from_bits(rounded.to_bits() | (x.to_bits() & SIGN_F64))
}

/// [`half_away`] for `f64`, with 2⁵² in place of 2²³.
#[inline]
pub fn half_away_f64(x: f64) -> f64 {
    let magnitude = x.to_bits() & !SIGN_F64;
    if magnitude >= WHOLE_F64.to_bits() {
        return x;
    }
    let magnitude = f64::from_bits(magnitude);
    let even = (magnitude + WHOLE_F64) - WHOLE_F64;
    let up = if magnitude - even == 0.5 { 1.0 } else { 0.0 };
    f64::from_bits((even + up).to_bits() | (x.to_bits() & SIGN_F64))
}

/// Returns [`half_even`] of |x| ≤ 2²² as an integer, in one step that vectorizes.
///
/// x + 1.5 · 2²³ is in [2²³, 2²⁴], where floats are the integers. So the addition rounds, and the pattern counts the
/// integers. The result for a larger x or NaN is unspecified.
#[inline]
pub fn half_even_small(x: f32) -> i32 {
    let shifted = x + ONE_AND_HALF;
    shifted.to_bits().wrapping_sub(ONE_AND_HALF.to_bits()) as i32
}

/// Applies [`half_even`], then [`saturate_i8`], in one step that vectorizes: the loop of an int8 quantizer.
///
/// Clamping first changes nothing, since the ends are integers, and lets [`half_even_small`] be used.
#[inline]
pub fn half_even_i8(x: f32) -> i8 {
    half_even_small(clamp_to_i8(x)) as i8
}

/// Applies [`half_away`], then [`saturate_i8`], in one step that vectorizes; see [`half_even_i8`].
///
/// The low byte of the shifted pattern is the code. A tie that was rounded towards zero has an exact difference of ½
/// with the sign of x; it is moved by one.
#[inline]
pub fn half_away_i8(x: f32) -> i8 {
    let x = clamp_to_i8(x);
    let shifted = x + ONE_AND_HALF;
    let off = x - (shifted - ONE_AND_HALF);
    let up = if off == 0.5 && x > 0.0 { 1 } else { 0 };
    let down = if off == -0.5 && x < 0.0 { 1 } else { 0 };
    (shifted.to_bits().wrapping_add(up).wrapping_sub(down)) as i8
}

/// 1.5 · 2²³; the low byte of its pattern is 0.
const ONE_AND_HALF: f32 = 12_582_912.0;

/// Returns `x` limited to −128..=127; 0 for NaN.
#[inline]
fn clamp_to_i8(x: f32) -> f32 {
    let low = if x < -128.0 { -128.0 } else { x };
    let high = if low > 127.0 { 127.0 } else { low };
    if x.is_nan() { 0.0 } else { high }
}

/// Returns `x` as an `i8`: the fraction is dropped, values outside −128..=127 become the nearer end, NaN becomes 0.
///
/// Round first if the format requires it: `saturate_i8(half_even(x))`.
#[inline]
pub const fn saturate_i8(x: f32) -> i8 {
    x as i8
}

/// Returns `x` as an `i32`: the fraction is dropped, values outside −2³¹..=2³¹ − 1 become the nearer end, NaN
/// becomes 0.
#[inline]
pub const fn saturate_i32(x: f32) -> i32 {
    x as i32
}

/// Returns `value` as an `i8` in `low..=high`: values outside become the nearer end. If `low` is above `high`, `low`
/// takes precedence.
#[inline]
pub const fn clamp_i8(value: i32, low: i8, high: i8) -> i8 {
    if value < low as i32 {
        low
    } else if value > high as i32 {
        if high < low { low } else { high }
    } else {
        value as i8
    }
}

/// Returns `numerator / denominator`, rounded once to the nearest `f32`, ties to even; 0 if the denominator is 0.
///
/// The numerator is scaled to 128 bits, so the quotient has at least 63: far more than the 24 kept bits. The
/// remainder of the division decides ties.
pub const fn ratio(numerator: i64, denominator: u64) -> f32 {
    let magnitude = numerator.unsigned_abs() as u128;
    if magnitude == 0 || denominator == 0 {
        return 0.0;
    }
    let zeros = magnitude.leading_zeros();
    let scaled = magnitude << zeros;
    let Some(quotient) = scaled.checked_div(denominator as u128) else {
        return 0.0;
    };
    let exact = quotient * denominator as u128 == scaled;
    // value = quotient · 2^−zeros; 24 bits of the quotient stay.
    let cut = 128 - 24 - quotient.leading_zeros();
    let kept = (quotient >> cut) as u32;
    let below = quotient << (128 - cut);
    let half = 1 << 127;
    let up = below > half || (below == half && (!exact || kept & 1 == 1));
    // Between 2⁻⁶⁴ and 2⁶³, so never subnormal. A carry out of the mantissa increases the exponent by itself.
    let exponent = 127 + 23 + cut - zeros;
    let bits = ((exponent - 1) << 23) + kept + up as u32;
    f32::from_bits(if numerator < 0 { bits | 1 << 31 } else { bits })
}

#[cfg(test)]
mod tests {
    use super::by_halves;
    use crate::number::Random;

    #[test]
    fn an_integer_of_64_bits_becomes_a_float_as_by_the_compiler() {
        let same = |n: i64| assert_eq!(by_halves(n).to_bits(), (n as f32).to_bits(), "{n}");
        let mut random = Random::new(3);
        for bits in 0..64 {
            for _ in 0..2000 {
                let n = (random.next_u64() >> bits) as i64;
                for n in [n, n.wrapping_neg()] {
                    same(n);
                }
            }
            // Ties and their neighbours.
            let half = 1i64 << bits;
            for n in [
                half,
                half.wrapping_mul(3),
                (1 << 24 | 1i64).wrapping_shl(bits),
            ] {
                for n in [n.wrapping_sub(1), n, n.wrapping_add(1)] {
                    same(n);
                    same(n.wrapping_neg());
                }
            }
        }
        same(i64::MIN);
    }
}
