//! The fixed-point arithmetic of [`super::ExactSum`]: division, rounding and squares on 64-bit limbs, least
//! significant first.

use core::num::NonZero;

/// A state with 64 fraction bits: units of 2⁻²¹³.
pub(super) type Wide = [u64; 7];

/// Limbs of a square of 384 bits times 64 bits.
pub(super) type Square = [u64; 13];

/// Divides in place by `n`; returns true if there is a remainder.
pub(super) fn divide(number: &mut Wide, n: NonZero<u64>) -> bool {
    let n = NonZero::<u128>::from(n);
    let mut remainder = 0u64;
    for limb in number.iter_mut().rev() {
        // Leading zeros need no division.
        if remainder == 0 && *limb == 0 {
            continue;
        }
        let part = u128::from(remainder) << 64 | u128::from(*limb);
        // remainder < n, so the quotient is below 2⁶⁴.
        *limb = (part / n) as u64;
        remainder = (part % n) as u64;
    }
    remainder != 0
}

/// Rounds to the nearest f32, ties to even. `sticky` means that there is something below one unit.
pub(super) fn round_to_f32(number: &Wide, sticky: bool) -> f32 {
    let Some(highest) = highest_bit(number) else {
        return 0.0;
    };
    // The last kept bit: 24 significant bits, or fewer if f32 is subnormal; bit 64 is 2⁻¹⁴⁹.
    let last = highest.saturating_sub(23).max(64);
    // The pattern: a carry out of the mantissa increases the exponent by itself.
    let bits = (u64::from(last - 64) << 23) + round_at(number, last, sticky);
    f32::from_bits(bits.min(0x7F80_0000) as u32)
}

/// Rounds an integer (all 64 fraction bits zero) to the nearest f64, ties to even.
pub(super) fn round_to_f64(number: &Wide) -> f64 {
    let Some(highest) = highest_bit(number) else {
        return 0.0;
    };
    // highest ≥ 64, so the 53 bits end inside the state.
    let last = highest.saturating_sub(52);
    // A mantissa of 53 bits with its last bit at 2⁰ of the state, 2⁻²¹³, has exponent field 1075 − 213.
    f64::from_bits((u64::from(last + 1074 - 213) << 52) + round_at(number, last, false))
}

/// Returns `number / 2^last`, rounded to nearest, ties to even. `last` is at least 1, and the result has at most 54
/// bits.
fn round_at(number: &Wide, last: u32, sticky: bool) -> u64 {
    let kept = bits_at(number, last);
    let half = bits_at(number, last.saturating_sub(1)) & 1 == 1;
    let below = sticky || any_below(number, last.saturating_sub(1));
    kept + u64::from(half && (below || kept & 1 == 1))
}

/// Returns the position of the highest set bit.
fn highest_bit(number: &Wide) -> Option<u32> {
    let mut position = 64 * number.len() as u32;
    for limb in number.iter().rev() {
        position -= 64;
        if let Some(bit) = limb.checked_ilog2() {
            return Some(position + bit);
        }
    }
    None
}

/// Returns the 64 bits from bit `position` up.
fn bits_at(number: &Wide, position: u32) -> u64 {
    let mut limbs = number.iter().skip((position / 64) as usize);
    let low = limbs.next().copied().unwrap_or(0);
    let high = limbs.next().copied().unwrap_or(0);
    ((u128::from(high) << 64 | u128::from(low)) >> (position % 64)) as u64
}

/// Returns true if a bit below `position` is set.
fn any_below(number: &Wide, position: u32) -> bool {
    let mut limbs = number.iter();
    let whole = limbs.by_ref().take((position / 64) as usize);
    let below = whole.fold(0, |any, limb| any | limb);
    let part = limbs
        .next()
        .map_or(0, |limb| limb & !(u64::MAX << (position % 64)));
    (below | part) != 0
}

/// Returns `number² · k`.
pub(super) fn square_times(number: &[u64; 6], k: u64) -> Square {
    let mut square = [0; 13];
    for (start, &factor) in number.iter().enumerate() {
        add_product(&mut square, start, number, factor);
    }
    let mut result = [0; 13];
    add_product(&mut result, 0, &square, k);
    result
}

/// Adds `number · factor · 2^(64 · start)`; bits beyond the 13 limbs are lost.
fn add_product(sum: &mut Square, start: usize, number: &[u64], factor: u64) {
    // Most sums use two or three of their limbs.
    if factor == 0 {
        return;
    }
    let mut carry = 0u64;
    let mut place = sum.iter_mut().skip(start);
    // `number` first: if the first iterator of a zip ends, the zip takes no more from its second.
    for (&digit, limb) in number.iter().zip(place.by_ref()) {
        // (2⁶⁴ − 1)² + 2 · (2⁶⁴ − 1) = 2¹²⁸ − 1: cannot overflow.
        let wide = u128::from(digit) * u128::from(factor) + u128::from(*limb) + u128::from(carry);
        *limb = wide as u64;
        carry = (wide >> 64) as u64;
    }
    for limb in place {
        let (sum, over) = limb.overflowing_add(carry);
        *limb = sum;
        if !over {
            return;
        }
        carry = 1;
    }
}
