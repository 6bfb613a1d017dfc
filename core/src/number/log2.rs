//! The base-2 logarithm of `f64` as a fixed sequence of `+ − × ÷`, the same bits everywhere.

/// Returns log₂(x) for positive finite `x`, within 2⁻⁵⁰ · |log₂(x)| of the true value (the largest error in tests was
/// 2⁻⁵¹·³); exact at powers of two.
///
/// Zero gives −∞, +∞ gives +∞, negative numbers and NaN give NaN.
///
/// With x = 2^e · m, m in [√½, √2): log₂(x) = e + (2/ln 2) · atanh(s), s = (m − 1)/(m + 1), |s| ≤ 0.1716. The series
/// of atanh ends after s²¹; the remainder is below s²² / 23 < 2⁻⁶⁰ of the result. e + log₂(m) does not
/// cancel: |log₂(m)| ≤ ½, so the sum is at least ½ in magnitude if e is not 0.
///
/// ```
/// use tercet_core::number::log2;
///
/// assert_eq!(log2(8.0), 3.0);
/// assert!((log2(10.0) - 3.321_928_094_887_362).abs() < 1e-15);
/// ```
pub fn log2(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    // Subnormals are scaled by 2^54 first.
    let (x, offset) = if x < f64::MIN_POSITIVE {
        (x * 18_014_398_509_481_984.0, 1023 + 54)
    } else {
        (x, 1023)
    };
    let pattern = x.to_bits();
    let mut exponent = (pattern >> 52) as i32 - offset;
    let mut m = f64::from_bits((pattern & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
    if m >= core::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    // Horner from the highest term: 1/21 + …, down to 1/3.
    let mut series = 0.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = (series + 1.0 / odd) * square;
    }
    // 2/ln 2 in two parts: the first product rounds at s's magnitude, the second adds the rest.
    let scaled = s * TWO_OVER_LN_2 + s * (TWO_OVER_LN_2_REST + series * TWO_OVER_LN_2);
    f64::from(exponent) + scaled
}

const TWO_OVER_LN_2: f64 = 2.0 * core::f64::consts::LOG2_E;
/// 2/ln 2 minus its f64.
const TWO_OVER_LN_2_REST: f64 = 4.071_054_748_186_206e-17;
