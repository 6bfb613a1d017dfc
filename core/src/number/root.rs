//! Square roots, rounded once, without std and without a floating-point unit.
//!
//! Stable `core` has no float square root, but exact integer ones ([`u64::isqrt`], [`u128::isqrt`]), from which a
//! correctly rounded float root follows. Engines on machines with a root instruction use it, as does [`sqrt_f32`] on
//! microcontrollers with one: IEEE 754 rounds it correctly too, so the bits are the same.

/// Returns √x rounded to nearest, ties to even, as in IEEE 754.
///
/// −0 gives −0, +∞ gives +∞; NaN and values below zero give NaN.
///
/// With x = m · 2^(2k) and m scaled into [2⁴⁸, 2⁵⁰) by an even power of two, ⌊√m⌋ has 25 bits: the 24 of the result
/// and the one that decides the rounding. √m is never halfway between two results: it would be an odd integer, and
/// its square would be odd, but m ends in at least 24 zero bits. So that one bit rounds, and there are no ties. No
/// result is subnormal, since √(2⁻¹⁴⁹) is above 2⁻⁷⁵.
pub fn sqrt_f32(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits << 1 == 0 || bits == f32::INFINITY.to_bits() {
        return x;
    }
    if bits > f32::INFINITY.to_bits() {
        return f32::NAN;
    }
    root(x)
}

#[cfg(all(tercet_dsp, target_abi = "eabihf"))]
use crate::arch::root;

/// Returns the root of a finite number above zero.
#[cfg(not(all(tercet_dsp, target_abi = "eabihf")))]
fn root(x: f32) -> f32 {
    let bits = x.to_bits();
    let (mantissa, exponent) = match bits >> 23 {
        0 => (bits, -149),
        field => (bits & 0x7F_FFFF | 0x80_0000, field as i32 - 150),
    };
    // 48 or 49 bits above the leading one, so that the exponent is even.
    let zeros = u64::from(mantissa).leading_zeros() as i32;
    let shift = zeros - 15 + ((exponent - (zeros - 15)) & 1);
    let root = (u64::from(mantissa) << shift).isqrt();
    let exponent = (exponent - shift) / 2;
    // root is in [2²⁴, 2²⁵): its rounded half has 24 bits, or is 2²⁴ and carries into the exponent.
    let rounded = (root >> 1) + (root & 1);
    f32::from_bits((((exponent + 1 + 149) as u32) << 23) + rounded as u32)
}

/// Returns √x rounded to nearest, ties to even, as in IEEE 754; see [`sqrt_f32`], with m in [2¹⁰⁶, 2¹⁰⁸).
pub fn sqrt_f64(x: f64) -> f64 {
    let bits = x.to_bits();
    if bits << 1 == 0 || bits == f64::INFINITY.to_bits() {
        return x;
    }
    if bits > f64::INFINITY.to_bits() {
        return f64::NAN;
    }
    let (mantissa, exponent) = match bits >> 52 {
        0 => (bits, -1074),
        field => (bits & ((1 << 52) - 1) | (1 << 52), field as i32 - 1075),
    };
    let zeros = u128::from(mantissa).leading_zeros() as i32;
    let shift = zeros - 21 + ((exponent - (zeros - 21)) & 1);
    let root = (u128::from(mantissa) << shift).isqrt() as u64;
    let exponent = (exponent - shift) / 2;
    let rounded = (root >> 1) + (root & 1);
    f64::from_bits((((exponent + 1 + 1074) as u64) << 52) + rounded)
}
