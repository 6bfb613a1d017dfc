//! Angles as fractions of a turn in integers, for rotary position embedding (RoPE; Su and others, 2021). Their
//! addition wraps like that of angles, and at position 100,000 they have lost no precision, unlike angles in floats.

/// Fraction bits in the polynomials.
const UNIT: u32 = 31;
/// π/4, (π/4)³/3!, (π/4)⁵/5!, and so on, in units of 2⁻³¹, with the signs of the sine's series.
const SINE: [i64; 6] = [1_686_629_713, -173_399_667, 5_348_082, -78_547, 673, -4];
/// 1, (π/4)²/2!, (π/4)⁴/4!, and so on, in units of 2⁻³¹, with the signs of the cosine's series.
const COSINE: [i64; 6] = [1 << UNIT, -662_337_939, 34_046_945, -700_062, 7_711, -53];

/// Returns sine and cosine of `phase` / 2⁶⁴ of a turn.
///
/// Each has an error of at most 2⁻²⁸, and is rounded to f32 once. The function subtracts the quarter nearest to the
/// angle. This leaves at most an eighth of a turn in either direction, with 31 bits; the two series go to the
/// eleventh and the tenth power. Twelve products of 32 bits to 64. O(1).
///
/// ```
/// use tercet_core::number::sin_cos;
///
/// assert_eq!(sin_cos(0), (0.0, 1.0));
/// // A quarter, a half.
/// assert_eq!(sin_cos(1 << 62), (1.0, 0.0));
/// assert_eq!(sin_cos(1 << 63), (0.0, -1.0));
/// ```
#[inline]
pub const fn sin_cos(phase: u64) -> (f32, f32) {
    let quarter = phase.wrapping_add(1 << 61) >> 62;
    // At most 2⁶¹ in magnitude: an eighth of a turn is 1.
    let rest = phase.wrapping_sub(quarter << 62).cast_signed();
    let x = ((rest >> 29) + 1) >> 1;
    let square = (x * x) >> UNIT;
    let sine = to_f32((x * series(&SINE, square)) >> UNIT);
    let cosine = to_f32(series(&COSINE, square));
    match quarter {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// Returns Σ c_k · xᵏ.
const fn series(of: &[i64; 6], x: i64) -> i64 {
    let mut sum = of[5];
    let mut at = 5;
    while at > 0 {
        at -= 1;
        sum = of[at] + ((sum * x) >> UNIT);
    }
    sum
}

/// Returns a number in units of 2⁻³¹ as f32.
const fn to_f32(x: i64) -> f32 {
    x as f32 * (1.0 / (1u32 << UNIT) as f32)
}

/// Fraction bits of a logarithm.
const LOG: u32 = 57;
/// log₂(2π) in units of 2⁻⁵⁷.
const TWO_PI: u64 = 382_120_863_381_307_115;

/// Returns the increase of phase per position for a pair of dimensions, in 2⁻⁶⁴ of a turn: θ^(−2·`pair`/`dims`) / 2π,
/// for a base θ.
///
/// The steps are the logarithm of the base, by squaring its mantissa 57 times; that times 2·`pair`/`dims`, rounded
/// down; and the power, as a product of the square roots of a half that the exponent's bits select. All in integers,
/// with an error of at most 2⁻⁴⁴ of the result plus one unit. The result need not be the nearest integer, but it is
/// the same on every machine.
///
/// Returns `None` for a base that is not a number of at least 1, for a number of dimensions that is odd or 0, or for
/// a pair that does not exist. O(1): some hundred products of 64 bits to 128.
///
/// ```
/// use tercet_core::number::rope_step;
///
/// // A radian.
/// assert_eq!(rope_step(10_000.0, 0, 64), Some(2_935_890_503_282_001_219));
/// assert_eq!(rope_step(0.5, 0, 64), None);
/// ```
pub const fn rope_step(base: f32, pair: u32, dims: u32) -> Option<u64> {
    if !(base >= 1.0 && base <= f32::MAX)
        || dims == 0
        || !dims.is_multiple_of(2)
        || pair >= dims / 2
    {
        return None;
    }
    let power = log2(base) as u128 * 2 * pair as u128 / dims as u128;
    // At least 2, at most 130.
    let exponent = power + TWO_PI as u128;
    let whole = (exponent >> LOG) as u32;
    let mut result: u64 = 1 << 63;
    let mut bit = 0;
    while bit < LOG {
        if exponent >> (LOG - 1 - bit) & 1 == 1 {
            result = ((result as u128 * ROOTS[bit as usize] as u128) >> 64) as u64;
        }
        bit += 1;
    }
    // The result is 2^(64 − whole) times the fraction's power, which is in units of 2⁻⁶³.
    Some(match result.checked_shr(whole - 1) {
        Some(step) => step,
        None => 0,
    })
}

/// Returns log₂ of a number of at least 1, below 2⁷, in units of 2⁻⁵⁷.
const fn log2(x: f32) -> u64 {
    let bits = x.to_bits();
    let mut log = (bits >> 23) as u64 - 127;
    let mut mantissa = ((bits & 0x7F_FFFF | 0x80_0000) as u64) << 40;
    let mut bit = 0;
    while bit < LOG {
        let square = mantissa as u128 * mantissa as u128;
        // 2¹²⁶ represents 1.
        let is_two = square >> 127 == 1;
        log = log << 1 | is_two as u64;
        mantissa = (square >> if is_two { 64 } else { 63 }) as u64;
        bit += 1;
    }
    log
}

/// 2⁶⁴ times 2^(−½), 2^(−¼), 2^(−⅛), and so on, rounded down.
const ROOTS: [u64; LOG as usize] = {
    let mut roots = [0; LOG as usize];
    let mut square: u128 = 1 << 127;
    let mut at = 0;
    while at < roots.len() {
        let root = square.isqrt();
        roots[at] = root as u64;
        square = root << 64;
        at += 1;
    }
    roots
};
