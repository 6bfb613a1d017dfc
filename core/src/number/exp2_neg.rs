//! 2 to a negative power in integers, for softmax, SiLU and sampling.

/// Fraction bits of the argument.
const UNIT: u32 = 20;
/// Steps of the table per unit of the exponent.
const STEPS: usize = 256;
/// Bits of the argument below a step.
const LOW: u32 = 12;

/// 2^(31 − i/256), rounded to nearest.
const TABLE: [u32; STEPS + 1] = table();

/// Returns 2^(−`u` / 2²⁰) in units of 2⁻³¹, for `u` below 2²⁵; 0 from there on.
///
/// `exp2_neg(0)` is 2³¹, the largest result. For `u` below 2²⁰ a larger argument gives a smaller result, with a
/// relative error of at most 2⁻²⁶. Each further 2²⁰ shifts the result right by one bit and drops the bits shifted
/// out. All 2²⁵ arguments are tested.
///
/// Uses a table of 257 words, a chord between two of its values and the parabola below it: three 32-bit products, no
/// 64-bit ones, and no division. O(1).
///
/// ```
/// use tercet_core::number::exp2_neg;
///
/// assert_eq!(exp2_neg(0), 1 << 31);
/// assert_eq!(exp2_neg(1 << 20), 1 << 30);
/// // 2^−½.
/// assert_eq!(exp2_neg(1 << 19), 1_518_500_250);
/// assert_eq!(exp2_neg(31 << 20), 1);
/// assert_eq!(exp2_neg(u32::MAX), 0);
/// ```
#[inline]
pub const fn exp2_neg(u: u32) -> u32 {
    if u >> 25 != 0 {
        return 0;
    }
    let step = (u >> LOW) as usize % STEPS;
    let low = u % (1 << LOW);
    let (high, next) = (TABLE[step], TABLE[step + 1]);
    // Below 2³²: a step is below 2²³.
    let chord = high - ((((high - next) >> 3) * low) >> (LOW - 3));
    // t · (1 − t) in units of 2⁻¹², at most 2¹⁰. A parabola's curvature is (ln 2 / 256)² / 2 of the value, 246 ·
    // 2⁻²⁶.
    let bend = (low * ((1 << LOW) - low)) >> LOW;
    let below = ((high >> 18) * bend * 246) >> UNIT;
    (chord - below) >> (u >> UNIT)
}

/// Computes the table from eight square roots of a half, each to 62 bits, and their powers. The error stays below
/// 2⁻⁵⁰.
const fn table() -> [u32; STEPS + 1] {
    const ONE: u32 = 62;
    let mut root: u128 = 1 << (ONE - 1);
    let mut roots = 0;
    while roots < 8 {
        root = (root << ONE).isqrt();
        roots += 1;
    }
    let mut table = [0; STEPS + 1];
    let (mut power, mut at): (u128, usize) = (1 << ONE, 0);
    while at <= STEPS {
        table[at] = ((power + (1 << (ONE - 32))) >> (ONE - 31)) as u32;
        power = (power * root) >> ONE;
        at += 1;
    }
    table[STEPS] = 1 << 30;
    table
}
