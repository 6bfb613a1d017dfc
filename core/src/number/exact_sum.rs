//! The exact sum of magnitudes, in fixed point.

use core::cmp::Ordering;
use core::num::NonZero;

use super::max::Extent;
use super::{Element, bits, fixed};

/// Number of values per block of [`ExactSum::add_slice`]. The bounds there and in `element.rs` are for 256.
pub(super) const BLOCK: usize = 256;

/// An exact sum of |x| over finite floats: a 384-bit integer in units of 2⁻¹⁴⁹.
///
/// The largest f32 is below 2¹²⁸, so its integer is below 2²⁷⁷; 2⁶⁴ of them stay below 2³⁴¹ and cannot wrap. The
/// state is a plain integer, so any split, order or merge gives the same bits.
///
/// 48 bytes. [`ExactSum::add`] is a shift and an addition with carry. [`ExactSum::add_slice`] reads each block of 256
/// twice, while it is in the first-level cache, and adds to the state once.
///
/// ```
/// use tercet_core::number::ExactSum;
///
/// let mut sum = ExactSum::ZERO;
/// sum.add_slice(&[4e30f32, -1e-30, 2e-30]);
/// let mut large = ExactSum::ZERO;
/// large.add(4e30);
/// // Nothing was lost beside the large value.
/// let small = sum.checked_sub(&large).unwrap();
/// assert_eq!(small.to_f32(), 1e-30 + 2e-30);
/// assert_eq!(sum.mean(4), Some(1e30));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ExactSum {
    /// Least significant limb first.
    limbs: [u64; 6],
}

impl ExactSum {
    /// The empty sum.
    pub const ZERO: Self = Self { limbs: [0; 6] };

    /// Adds |x|.
    ///
    /// `x` must be finite, so check first (see [`crate::number::Stats`]): an infinity or NaN is treated as a number
    /// with an ordinary exponent.
    #[inline]
    pub fn add(&mut self, x: f32) {
        let magnitude = bits::magnitude(x);
        self.add_mantissas(u64::from(bits::mantissa(magnitude)), magnitude);
    }

    /// Adds |x| of every value. The result is the same as with [`ExactSum::add`] one by one, for any values.
    ///
    /// Blocks of 256 values are summed exactly in f64 or u64, and then added here. Values too far below the block's
    /// largest are added one by one.
    pub fn add_slice<T: Element>(&mut self, values: &[T]) {
        for block in values.chunks(BLOCK) {
            self.add_block(block, Extent::of(block).magnitude());
        }
    }

    /// Adds a block of at most 256 values whose largest magnitude has the pattern `largest`.
    #[inline]
    pub(super) fn add_block<T: Element>(&mut self, block: &[T], largest: u32) {
        debug_assert!(block.len() <= BLOCK);
        let sum = if FLOAT_UNIT {
            sum_f64(block, largest)
        } else {
            None
        };
        match sum {
            Some(sum) => self.add_f64(sum),
            None => self.add_aligned(block, largest),
        }
    }

    /// Adds a block by shifting mantissas to the largest exponent's place.
    ///
    /// A mantissa has 24 bits and is shifted by at most 32, so it stays below 2⁵⁶, and 256 of them stay below 2⁶⁴.
    /// Smaller values are added one by one.
    fn add_aligned<T: Element>(&mut self, block: &[T], largest: u32) {
        let floor = bits::shift(largest).saturating_sub(32);
        let mut aligned = 0u64;
        for value in block {
            let magnitude = bits::magnitude(value.to_f32());
            let mantissa = u64::from(bits::mantissa(magnitude));
            match bits::shift(magnitude).checked_sub(floor) {
                Some(shift) => aligned += mantissa << shift,
                None => self.add_mantissas(mantissa, magnitude),
            }
        }
        self.add_shifted(aligned, floor);
    }

    /// Adds a value that is a non-negative multiple of 2⁻¹⁴⁹ below 2¹³⁶, without loss.
    fn add_f64(&mut self, value: f64) {
        let bits = value.to_bits();
        if bits == 0 {
            return;
        }
        // 2⁻¹⁴⁹ is far above f64's subnormals, so the hidden bit is always set. The value is mantissa · 2^(place −
        // 149).
        let mantissa = bits & ((1 << 52) - 1) | (1 << 52);
        let place = (bits >> 52) as i32 - (1075 - 149);
        if place >= 0 {
            self.add_shifted(mantissa, place as u32);
        } else {
            // At least 2⁻¹⁴⁹ means place ≥ −52, and a multiple of it means that only zeros are shifted out.
            self.add_shifted(mantissa >> -place, 0);
        }
    }

    /// Adds `mantissas · 2^k`, where 2^k is the unit of the last place of floats with pattern `magnitude`.
    ///
    /// This adds a sum of [`bits::mantissa`]s of floats that share an exponent (as in
    /// [`crate::engine::MagnitudeBin`]) in one step.
    #[inline]
    pub fn add_mantissas(&mut self, mantissas: u64, magnitude: u32) {
        self.add_shifted(mantissas, bits::shift(magnitude));
    }

    /// Adds `integer · 2^shift` units of 2⁻¹⁴⁹.
    ///
    /// Exact if `shift` is at most 254, for fewer than 2⁶⁴ additions: 64 + 254 + 64 bits are below 384. Bits beyond
    /// those are lost.
    #[inline]
    pub fn add_shifted(&mut self, integer: u64, shift: u32) {
        let wide = u128::from(integer) << (shift % 64);
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        let mut limbs = self.limbs.iter_mut().skip((shift / 64) as usize);
        let mut carry = match limbs.next() {
            Some(limb) => add_carry(limb, low, false),
            None => return,
        };
        if let Some(limb) = limbs.next() {
            carry = add_carry(limb, high, carry);
        }
        for limb in limbs {
            if !carry {
                return;
            }
            carry = add_carry(limb, 0, carry);
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, addend) in self.limbs.iter_mut().zip(other.limbs) {
            carry = add_carry(limb, addend, carry);
        }
    }

    /// Returns this sum minus `other`; `None` if `other` is larger.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        let mut difference = *self;
        let mut borrow = false;
        for (limb, subtrahend) in difference.limbs.iter_mut().zip(other.limbs) {
            let (part, under) = limb.overflowing_sub(subtrahend);
            let (part, more) = part.overflowing_sub(u64::from(borrow));
            *limb = part;
            borrow = under | more;
        }
        (!borrow).then_some(difference)
    }

    /// Returns true if nothing, or only zeros, was added.
    pub fn is_zero(&self) -> bool {
        self.limbs == [0; 6]
    }

    /// Returns the sum divided by `n`, rounded once to nearest, ties to even; `None` if `n` is 0. Infinity if the
    /// quotient exceeds the largest f32 (never for a true mean).
    ///
    /// The division keeps 64 bits below 2⁻¹⁴⁹, and a flag for any remainder. So the bit that decides the rounding, at
    /// 2⁻¹⁵⁰ or above, is always among them.
    pub fn mean(&self, n: u64) -> Option<f32> {
        let n = NonZero::new(n)?;
        let mut quotient = self.with_fraction();
        let sticky = fixed::divide(&mut quotient, n);
        Some(fixed::round_to_f32(&quotient, sticky))
    }

    /// Returns the sum, rounded once to nearest, ties to even; infinity above the largest f32.
    pub fn to_f32(&self) -> f32 {
        fixed::round_to_f32(&self.with_fraction(), false)
    }

    /// Returns the sum, rounded once to nearest, ties to even. Always finite, never subnormal.
    pub fn to_f64(&self) -> f64 {
        fixed::round_to_f64(&self.with_fraction())
    }

    /// Compares `self² · k_self` with `other² · k_other`, exactly.
    ///
    /// This is the order of the `Optimal` rule: with S the sum of the k largest magnitudes, a beats b if `S_a² · k_b`
    /// exceeds `S_b² · k_a`, so `a.cmp_squares(k_b, &b, k_a)`.
    ///
    /// A side has at most 2 · 384 + 64 = 832 bits, so nothing is lost for any state. A float comparison decides only
    /// if its margin is proved.
    pub fn cmp_squares(&self, k_self: u64, other: &Self, k_other: u64) -> Ordering {
        let decided = if FLOAT_UNIT {
            self.cmp_squares_f64(k_self, other, k_other)
        } else {
            None
        };
        decided.unwrap_or_else(|| self.cmp_squares_integer(k_self, other, k_other))
    }

    /// Does [`ExactSum::cmp_squares`] in f64 if the sides differ by more than 2⁻⁴⁵ of the larger; otherwise returns
    /// `None`.
    ///
    /// A side has at most five roundings (the sum, which counts twice in the square, the square, the count, the
    /// product), which is a factor within (1 ± 2⁻⁵³)⁵. So the errors of both sides and the margin's own rounding are
    /// together less than 2⁻⁴⁹. Sides other than 0 are between 2⁻²⁹⁸ and 2⁵³⁴, in f64's normal range.
    fn cmp_squares_f64(&self, k_self: u64, other: &Self, k_other: u64) -> Option<Ordering> {
        const MARGIN: f64 = 1.0 + 1.0 / (1u64 << 45) as f64;
        let side = |sum: &Self, k: u64| {
            let sum = sum.to_f64();
            (sum * sum) * k as f64
        };
        let (a, b) = (side(self, k_self), side(other, k_other));
        if a > b * MARGIN {
            Some(Ordering::Greater)
        } else if b > a * MARGIN {
            Some(Ordering::Less)
        } else {
            None
        }
    }

    fn cmp_squares_integer(&self, k_self: u64, other: &Self, k_other: u64) -> Ordering {
        let a = fixed::square_times(&self.limbs, k_self);
        let b = fixed::square_times(&other.limbs, k_other);
        a.iter().rev().cmp(b.iter().rev())
    }

    /// Returns the state with 64 fraction bits below it, least significant limb first.
    fn with_fraction(&self) -> [u64; 7] {
        let [a, b, c, d, e, f] = self.limbs;
        [0, a, b, c, d, e, f]
    }
}

impl PartialOrd for ExactSum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ExactSum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }
}

/// True if f64 arithmetic is probably in hardware: on 64-bit machines and WebAssembly. This affects only speed; every
/// path is exact.
const FLOAT_UNIT: bool = cfg!(any(target_pointer_width = "64", target_arch = "wasm32"));

/// Returns Σ|x| of at most 256 values, in eight lanes, if every partial sum is certainly exact in f64, so that the
/// order does not matter. Otherwise returns `None`. See `Sealed::EXACT_SPREAD`.
#[inline]
fn sum_f64<T: Element>(block: &[T], largest: u32) -> Option<f64> {
    if largest >= bits::INFINITE {
        return None;
    }
    // The smallest pattern allowed besides zero.
    let floor = (largest >> 23).saturating_sub(T::EXACT_SPREAD) << 23;
    let mut sums = [0.0f64; 8];
    let mut below = [0u32; 8];
    let mut add = |chunk: &[T]| {
        for ((sum, below), value) in sums.iter_mut().zip(&mut below).zip(chunk) {
            let magnitude = bits::magnitude(value.to_f32());
            *sum += f64::from(f32::from_bits(magnitude));
            // The sign bit is set if magnitude < floor and magnitude > 0.
            *below |= magnitude.wrapping_sub(floor) & magnitude.wrapping_neg();
        }
    };
    let chunks = block.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        add(chunk);
    }
    add(rest);
    let below = below.iter().fold(0, |any, lane| any | lane);
    (below >> 31 == 0).then(|| sums.iter().sum())
}

/// Adds `value` and a carry to a limb; returns true if it overflows.
#[inline]
fn add_carry(limb: &mut u64, value: u64, carry: bool) -> bool {
    let (sum, over) = limb.overflowing_add(value);
    let (sum, more) = sum.overflowing_add(u64::from(carry));
    *limb = sum;
    over | more
}

/// A machine uses one of the two paths; these tests run both.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Random;
    use std::vec::Vec;

    fn one_by_one(values: &[f32]) -> ExactSum {
        let mut sum = ExactSum::ZERO;
        for &value in values {
            sum.add(value);
        }
        sum
    }

    #[test]
    fn blocks_sum_alike_in_f64_and_in_u64() {
        let mut random = Random::new(1);
        let mut taken = 0;
        for round in 0..20_000 {
            let (width, top) = (1 + random.below(45), random.below(255));
            let values: Vec<f32> = (0..=random.below(256))
                .map(|_| {
                    let field = top.saturating_sub(random.below(width)) as u32;
                    let mantissa = match round % 3 {
                        0 => 0,
                        1 => 0x7F_FFFF,
                        _ => (random.next_u64() >> 41) as u32,
                    };
                    f32::from_bits(field << 23 | mantissa) * random.below(3) as f32
                })
                .filter(|value| value.is_finite())
                .collect();
            let truth = one_by_one(&values);
            let largest = Extent::of(&values).magnitude();
            let mut aligned = ExactSum::ZERO;
            aligned.add_aligned(&values, largest);
            assert_eq!(aligned, truth);
            if let Some(sum) = sum_f64(&values, largest) {
                let mut float = ExactSum::ZERO;
                float.add_f64(sum);
                assert_eq!(float, truth);
                taken += 1;
            }
        }
        assert!((5_000..15_000).contains(&taken), "{taken}");
    }

    #[test]
    fn squares_compare_alike_in_f64_and_in_integers() {
        let mut random = Random::new(2);
        let mut decided = 0;
        for _ in 0..20_000 {
            let mut a = ExactSum::ZERO;
            a.add_shifted(random.next_u64(), random.below(255) as u32);
            let mut b = a;
            b.add_shifted(random.next_u64(), random.below(255) as u32);
            let (k_a, k_b) = (random.next_u64(), random.next_u64() >> random.below(64));
            for (k_a, k_b) in [(k_a, k_b), (k_a, k_a)] {
                let truth = a.cmp_squares_integer(k_a, &b, k_b);
                if let Some(order) = a.cmp_squares_f64(k_a, &b, k_b) {
                    assert_eq!(order, truth);
                    decided += 1;
                }
            }
        }
        assert!((20_000..40_000).contains(&decided), "{decided}");
    }
}
