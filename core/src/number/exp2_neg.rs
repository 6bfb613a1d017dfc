//! 2 to a negative power in integers: what softmax, SiLU and sampling are made of.

/// Bits of a whole in the argument.
const UNIT: u32 = 20;
/// Steps of the table in a whole.
const STEPS: usize = 256;
/// Bits of the argument below a step.
const LOW: u32 = 12;

/// 2^(31 − i/256), to the nearest.
const TABLE: [u32; STEPS + 1] = table();

/// 2^(−`u` / 2²⁰) in units of 2⁻³¹, for `u` below 2²⁵; 0 from there on.
///
/// `exp2_neg(0)` is 2³¹, and no argument gives more. Within the first whole a larger argument gives a smaller result, which is off by at most 2⁻²⁶
/// of itself; each whole more shifts it by a bit, what falls off is dropped. All 2²⁵ arguments are tested.
///
/// A table of 257 words, a chord between two of its values and the parabola below it: three products of 32 bits, none of 64, and no division.
/// O(1).
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
    // t · (1 − t) in units of 2⁻¹², at most 2¹⁰; a parabola's curvature is (ln 2 / 256)² / 2 of the value, 246 · 2⁻²⁶.
    let bend = (low * ((1 << LOW) - low)) >> LOW;
    let below = ((high >> 18) * bend * 246) >> UNIT;
    (chord - below) >> (u >> UNIT)
}

/// By eight square roots of a half, each to 62 bits, and their powers: what is off stays below 2⁻⁵⁰.
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
