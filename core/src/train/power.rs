//! Gradients as int8 codes times a power of two.

use crate::number::bits::{self, INFINITE};
use crate::number::round::half_even_small;

/// Smallest exponent of a group whose codes are not added to those of others.
pub const FREE_FLOOR: i32 = -100;
/// Smallest exponent of a group in a gradient of weights; its sums have units of 2 to this power.
pub const WEIGHT_FLOOR: i32 = -33;
/// Largest exponent of such a group: 64 products of 127 · 127 are below 2²⁰; times 2²⁹, they leave space for 2¹³
/// groups, and twice that for the embedding.
pub const WEIGHT_CEILING: i32 = -4;
/// Smallest exponent of a group in a gradient of keys and values.
pub const ATTENTION_FLOOR: i32 = -41;
/// Largest exponent of such a group: 64 products of 127 · 32,767 are below 2²⁸; times 2²⁹, they leave space for
/// [`ATTENTION_GROUPS`].
pub const ATTENTION_CEILING: i32 = -12;
/// Largest number of groups of rows in a sequence, over all query heads that share a key head.
pub const ATTENTION_GROUPS: usize = 64;

/// Returns the largest magnitude of the values, as a pattern ([`bits::magnitude`]).
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> u32 {
    values
        .iter()
        .fold(0, |most, &value| bits::magnitude(value).max(most))
}

/// Returns the least e, but at least `floor`, with a magnitude ≤ 127 · 2ᵉ. The magnitude is passed as a pattern.
/// `None` for an infinity or NaN.
///
/// ```
/// use tercet_core::train::exponent;
///
/// assert_eq!(exponent(127f32.to_bits(), -100), Some(0));
/// assert_eq!(exponent(127.5f32.to_bits(), -100), Some(1));
/// assert_eq!(exponent(0.5f32.to_bits(), -3), Some(-3));
/// assert_eq!(exponent(f32::NAN.to_bits(), -3), None);
/// ```
#[inline]
pub const fn exponent(magnitude: u32, floor: i32) -> Option<i32> {
    if magnitude >= INFINITE {
        return None;
    }
    Some(least_exponent(magnitude, 127, floor))
}

/// Returns the least e, but at least `floor`, with a finite magnitude ≤ `most` · 2ᵉ; `most` is below 2²⁴.
#[inline(always)]
pub(super) const fn least_exponent(magnitude: u32, most: u32, floor: i32) -> i32 {
    // The value is mantissa · 2^(field − 150), with a mantissa between 2²³ and 2²⁴; so is `most` when shifted.
    let shift = most.leading_zeros() - 8;
    let field = (magnitude >> 23) as i32;
    let mantissa = magnitude & 0x7F_FFFF | 0x80_0000;
    let above = if mantissa > most << shift { 1 } else { 0 };
    let exponent = field - 150 + shift as i32 + above;
    if exponent > floor { exponent } else { floor }
}

/// Returns 2ᵉ as a float, for e from −126 to 127.
#[inline]
pub(super) const fn two_to(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// Returns the code of a value: value · `factor` rounded half to even, with the factor 2⁻ᵉ. The product is exact
/// unless it is far below a half.
#[inline(always)]
pub fn code(value: f32, factor: f32) -> i8 {
    half_even_small(value * factor) as i8
}

/// Computes the codes of a row that is a group by itself. Returns the power of two of the codes; if a value is not
/// finite, returns `None` and writes zeros. Both slices have the same length. O(n).
#[inline(always)]
pub fn row(values: &[f32], floor: i32, codes: &mut [i8]) -> Option<f32> {
    let Some(exponent) = exponent(largest(values), floor) else {
        codes.fill(0);
        return None;
    };
    let factor = two_to(-exponent);
    for (to, &value) in codes.iter_mut().zip(values) {
        *to = code(value, factor);
    }
    Some(two_to(exponent))
}

/// Like [`row`], with 16-bit codes. The power of two is smaller by 2⁸, and each code is 255 · `high` + `low`, both
/// within ±127, as in [`planes`](crate::quant::activations::planes). The gradients of a softmax need this: one is
/// near −1, all others together weigh the same, and each of them alone would be 0 in 8 bits. O(n).
#[inline(always)]
pub fn row_wide(values: &[f32], high: &mut [i8], low: &mut [i8]) -> Option<f32> {
    let Some(exponent) = exponent(largest(values), FREE_FLOOR) else {
        high.fill(0);
        low.fill(0);
        return None;
    };
    let factor = two_to(8 - exponent);
    for ((&value, high), low) in values.iter().zip(high).zip(low) {
        // Within ±32,512; this gives its quotient by 255, rounded to nearest.
        let code = half_even_small(value * factor);
        let nearest = code.wrapping_mul(65_793).wrapping_add(1 << 23) >> 24;
        *high = nearest as i8;
        *low = code.wrapping_sub(nearest.wrapping_mul(255)) as i8;
    }
    Some(two_to(exponent - 8))
}

/// Returns a value in units of 2^`unit`, rounded half to even; `None` unless it is below 2⁴³ units, of which 2¹⁹
/// values can be added in 64 bits.
///
/// ```
/// use tercet_core::train::fixed;
///
/// assert_eq!(fixed(0.75, -25), Some(3 << 23));
/// assert_eq!(fixed(1e9, -32), None);
/// ```
#[inline]
pub fn fixed(value: f32, unit: i32) -> Option<i64> {
    const MOST: f64 = (1u64 << 43) as f64;
    // Exact: a float's 24 bits times a power of two.
    let scaled = f64::from(value) * f64::from_bits(((1023 - unit) as u64) << 52);
    if !(scaled > -MOST && scaled < MOST) {
        return None;
    }
    // Half to even in one addition, as in `half_even_small`.
    const ONE_AND_HALF: f64 = 6_755_399_441_055_744.0;
    let bits = (scaled + ONE_AND_HALF).to_bits();
    Some(bits.wrapping_sub(ONE_AND_HALF.to_bits()) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_is_the_least_that_holds_a_value() {
        for value in [1e-30f32, 0.1, 1.0, 126.9, 127.0, 127.000_01, 254.0, 3e20] {
            let found = exponent(value.to_bits(), -120).unwrap();
            let (value, scale) = (f64::from(value), |e: i32| 2f64.powi(e));
            assert!(value <= 127.0 * scale(found), "{value}");
            assert!(value > 127.0 * scale(found - 1), "{value}");
        }
    }

    #[test]
    fn codes_are_rounded_to_the_nearest() {
        let values = [127.0, -63.5, 0.5, 1.5, -126.6];
        let mut codes = [0; 5];
        assert_eq!(row(&values, FREE_FLOOR, &mut codes), Some(1.0));
        assert_eq!(codes, [127, -64, 0, 2, -127]);
        assert_eq!(row(&[f32::INFINITY; 5], FREE_FLOOR, &mut codes), None);
        assert_eq!(codes, [0; 5]);
    }

    #[test]
    fn wide_codes_are_the_nearest_of_their_power() {
        let values = [1.0f32, -0.003_9, 0.000_03, -1.27, 0.0];
        let (mut high, mut low) = ([0; 5], [0; 5]);
        let unit = row_wide(&values, &mut high, &mut low).unwrap();
        for ((&value, &high), &low) in values.iter().zip(&high).zip(&low) {
            let code = 255 * i32::from(high) + i32::from(low);
            assert!((code as f32 * unit - value).abs() <= unit / 2.0, "{value}");
        }
    }

    #[test]
    fn a_fixed_point_number_is_the_nearest() {
        for value in [0.3f32, -1.7, 1e-9, 255.99] {
            let found = fixed(value, -32).unwrap() as f64 / 2f64.powi(32);
            assert!(
                (found - f64::from(value)).abs() <= 2f64.powi(-33),
                "{value}"
            );
        }
        assert_eq!(fixed(f32::NAN, -25), None);
    }
}
