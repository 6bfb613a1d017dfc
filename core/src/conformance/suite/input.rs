//! Fixed inputs: the same on every machine, computed with integers and exact float steps.

use crate::number::Random;

/// Largest length of an input.
pub(crate) const MAX: usize = 257;

/// A family of awkward values.
#[derive(Clone, Copy)]
pub(crate) enum Family {
    /// Bell-shaped around 0, spread about 1.
    Bell,
    /// Multiples of 1/4 in −8..8: ties for every rounding rule, and signed zeros.
    Ties,
    /// Subnormals and the smallest normals.
    Tiny,
    /// Magnitudes up to the largest f32.
    Huge,
    /// Exponents spread over the whole range.
    Spread,
    /// Zeros of both signs.
    Zeros,
}

/// All families, in the order that digests fix.
pub(crate) const FAMILIES: [Family; 6] = [
    Family::Bell,
    Family::Ties,
    Family::Tiny,
    Family::Huge,
    Family::Spread,
    Family::Zeros,
];

impl Family {
    /// Fills `out`; the same seed gives the same values.
    pub(crate) fn fill(self, seed: u64, out: &mut [f32]) {
        let mut random = Random::new(seed);
        for value in out {
            let draw = random.next_u64();
            let sign = (draw >> 63) as u32;
            *value = match self {
                Self::Bell => {
                    // Eight 8-bit draws: an integer below 2^11 near 1020, exact in f32.
                    let sum: u32 = draw.to_le_bytes().iter().map(|&byte| u32::from(byte)).sum();
                    (sum as f32 - 1020.0) / 256.0
                }
                Self::Ties => ((draw % 65) as f32 - 32.0) * if sign == 1 { -0.25 } else { 0.25 },
                Self::Tiny => f32::from_bits(sign << 31 | (draw as u32 & 0x00FF_FFFF)),
                Self::Huge => {
                    f32::from_bits(sign << 31 | 0x7E80_0000 | (draw as u32 & 0x00FF_FFFF))
                }
                Self::Spread => f32::from_bits(
                    sign << 31 | ((draw >> 32) as u32 % 255) << 23 | (draw as u32 & 0x7F_FFFF),
                ),
                Self::Zeros => f32::from_bits(sign << 31),
            };
        }
    }
}

/// Calls `each` with every family at every size of [`super::SIZES`].
pub(crate) fn for_each(seed: u64, each: &mut dyn FnMut(&[f32])) {
    let mut buffer = [0.0; MAX];
    for (index, family) in FAMILIES.into_iter().enumerate() {
        for size in super::SIZES {
            let Some(values) = buffer.get_mut(..size) else {
                continue;
            };
            family.fill(seed ^ (index as u64) << 32 ^ size as u64, values);
            each(values);
        }
    }
}
