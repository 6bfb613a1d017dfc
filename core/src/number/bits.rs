//! Bit patterns of `f32` as integers in the same order as the floats.

/// Returns the bits of |x|: 31 bits in the order of magnitudes. Infinity is [`INFINITE`]; NaN is above it.
#[inline]
pub const fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7FFF_FFFF
}

/// The pattern of infinity: a magnitude equal to it or above is not finite.
pub const INFINITE: u32 = 0x7F80_0000;

/// Returns the integer part of a magnitude's pattern: |x| = `mantissa` · 2^([`shift`] − 149).
///
/// 24 bits for a normal value, with the top one always set; below 2²³ for a subnormal. Patterns of infinity and NaN
/// are treated like those of an ordinary exponent.
#[inline]
pub const fn mantissa(magnitude: u32) -> u32 {
    let hidden = if magnitude >> 23 == 0 { 0 } else { 0x80_0000 };
    magnitude & 0x7F_FFFF | hidden
}

/// Returns the power of two of a magnitude's pattern, counted from 2⁻¹⁴⁹: 0 for subnormals, at most 253 for finite
/// values. See [`mantissa`].
#[inline]
pub const fn shift(magnitude: u32) -> u32 {
    (magnitude >> 23).saturating_sub(1)
}

/// Maps `f32` to `u32` in the same order: `a < b` as floats gives `ordered(a) < ordered(b)`.
///
/// All bits of negative numbers are flipped, of others only the sign; −0 is directly below +0.
#[inline]
pub const fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    // All ones for a negative number, only the sign bit for the others.
    bits ^ (((bits as i32) >> 31) as u32 | 0x8000_0000)
}

/// The inverse of [`ordered`].
#[inline]
pub const fn from_ordered(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 {
        key & 0x7FFF_FFFF
    } else {
        !key
    })
}
