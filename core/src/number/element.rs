//! The float types of tensors.

use half::{bf16, f16};

use super::{Plain, bits};

mod sealed {
    use super::{bits, extremes_of_halves};

    /// Limits [`super::Element`] to the three types, and states the properties that the exact sum needs.
    pub trait Sealed {
        /// Largest distance between the exponents of the largest and the smallest non-zero magnitude of a block of
        /// 256 for which their sum, and so every partial sum, is exact in `f64`.
        ///
        /// With p significant bits, a value is a multiple of 2^(e − p + 1), and 256 values with exponents up to E sum
        /// to less than 2^(E + 9). Subnormals count with the exponent of the smallest normal. So 53 bits hold every
        /// partial sum while E + 9 − (e − p + 1) ≤ 53, which is E − e ≤ 45 − p.
        const EXACT_SPREAD: u32;

        /// Returns the smallest and the largest of the values in the order of [`bits::ordered`], as its keys;
        /// `(u32::MAX, 0)` if there are no values.
        fn extremes(values: &[Self]) -> (u32, u32)
        where
            Self: Sized;
    }
    impl Sealed for f32 {
        const EXACT_SPREAD: u32 = 45 - 24;

        #[inline]
        fn extremes(values: &[Self]) -> (u32, u32) {
            values.iter().fold((u32::MAX, 0), |(low, high), value| {
                let key = bits::ordered(*value);
                (low.min(key), high.max(key))
            })
        }
    }
    impl Sealed for half::bf16 {
        const EXACT_SPREAD: u32 = 45 - 8;

        #[inline]
        fn extremes(values: &[Self]) -> (u32, u32) {
            extremes_of_halves(values, Self::to_bits, Self::from_bits)
        }
    }
    impl Sealed for half::f16 {
        // Always exact: a finite f16 is a multiple of 2⁻²⁴ below 2¹⁶, so 256 of them need 48 bits.
        const EXACT_SPREAD: u32 = u32::MAX;

        #[inline]
        fn extremes(values: &[Self]) -> (u32, u32) {
            extremes_of_halves(values, Self::to_bits, Self::from_bits)
        }
    }
}

/// A float that converts to `f32` without rounding: `f32`, [`f16`](struct@f16) or [`bf16`].
///
/// Every quantizer reads its values with [`Element::to_f32`], so a tensor of 16-bit floats gives the same bits as its
/// f32 copy.
pub trait Element: Plain + PartialEq + Default + sealed::Sealed {
    /// Number of bytes per value in a file.
    const BYTES: usize;

    /// Returns the same value as `f32`; exact, since every f16 and bf16 is an f32. A NaN stays a NaN.
    fn to_f32(self) -> f32;

    /// Reads one little-endian value from exactly [`Element::BYTES`] bytes; returns `None` for any other length.
    fn from_le_bytes(bytes: &[u8]) -> Option<Self>;
}

impl Element for f32 {
    const BYTES: usize = 4;

    #[inline]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline]
    fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        Some(f32::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Element for f16 {
    const BYTES: usize = 2;

    /// Converts without branches, so that a loop over f16 values vectorizes on machines without a conversion
    /// instruction (`half`'s own conversion branches there).
    #[inline]
    fn to_f32(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let magnitude = (bits & 0x7FFF) << 13;
        // The exponent changes from bias 15 to bias 127; that of infinity and NaN is moved twice, to 255.
        let special = if magnitude >= 0x0F80_0000 {
            112 << 23
        } else {
            0
        };
        let normal = magnitude + (112 << 23) + special;
        // A subnormal m · 2⁻²⁴ is (1 + m/1024) · 2⁻¹⁴ − 2⁻¹⁴; both terms and the difference are exact.
        let subnormal = f32::from_bits(magnitude + (113 << 23)) - f32::from_bits(113 << 23);
        let widened = if magnitude < 0x0080_0000 {
            subnormal.to_bits()
        } else {
            normal
        };
        f32::from_bits(widened | (bits & 0x8000) << 16)
    }

    #[inline]
    fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        Some(f16::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Element for bf16 {
    const BYTES: usize = 2;

    #[inline]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline]
    fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        Some(bf16::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Returns the extremes of 16-bit floats, compared in 16 bits, since conversion keeps the order.
#[inline]
fn extremes_of_halves<T: Element>(
    values: &[T],
    to_bits: impl Fn(T) -> u16,
    from_bits: impl Fn(u16) -> T,
) -> (u32, u32) {
    if values.is_empty() {
        return (u32::MAX, 0);
    }
    // Flipping all bits except the sign of negative patterns makes them order like signed integers. It is its own
    // inverse.
    let flip = |bits: i16| bits ^ ((bits >> 15) & i16::MAX);
    let (mut low, mut high) = (i16::MAX, i16::MIN);
    for &value in values {
        let key = flip(to_bits(value) as i16);
        low = low.min(key);
        high = high.max(key);
    }
    let key = |key: i16| bits::ordered(from_bits(flip(key) as u16).to_f32());
    (key(low), key(high))
}
