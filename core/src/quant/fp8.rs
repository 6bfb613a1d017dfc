//! Eight-bit floats: E4M3 and E5M2 of the OCP 8-bit Floating Point Specification (OFP8), revision 1.0.
//!
//! | | E4M3 | E5M2 |
//! |---|---|---|
//! | sign, exponent, mantissa bits | 1, 4, 3 | 1, 5, 2 |
//! | exponent bias | 7 | 15 |
//! | largest value | 448 | 57,344 |
//! | smallest normal | 2⁻⁶ | 2⁻¹⁴ |
//! | smallest subnormal | 2⁻⁹ | 2⁻¹⁶ |
//! | infinities | none | `0x7C`, `0xFC` |
//! | NaN | `0x7F`, `0xFF` | `0x7D`–`0x7F`, `0xFD`–`0xFF` |
//!
//! Both encoders round to nearest, ties to even, with integer arithmetic. Subnormals are kept in both directions.
//!
//! ```
//! use tercet_core::quant::fp8::{Fp8, Overflow};
//!
//! assert_eq!(Fp8::E4M3.encode(1.0, Overflow::Saturate), 0x38);
//! assert_eq!(Fp8::E4M3.decode(0x7E), 448.0);
//! assert_eq!(Fp8::E5M2.encode(1e9, Overflow::Special), 0x7C);
//! ```

use super::QuantError;
use crate::number::{Element, bits};

/// One of the two OFP8 formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fp8 {
    /// 4 exponent bits, 3 mantissa bits, no infinities (others call it `float8_e4m3fn`).
    E4M3,
    /// 5 exponent bits, 2 mantissa bits, infinities and NaNs as IEEE 754 places them (`float8_e5m2`).
    E5M2,
}

/// Result for a magnitude that rounds above the format's largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Overflow {
    /// The largest value, also for infinities (OFP8's saturating conversion).
    #[default]
    Saturate,
    /// NaN in E4M3, infinity in E5M2 (OFP8's non-saturating conversion).
    Special,
}

impl Fp8 {
    const fn mantissa_bits(self) -> u32 {
        match self {
            Self::E4M3 => 3,
            Self::E5M2 => 2,
        }
    }

    const fn bias(self) -> u32 {
        match self {
            Self::E4M3 => 7,
            Self::E5M2 => 15,
        }
    }

    /// Returns the code of the largest value.
    pub const fn max_code(self) -> u8 {
        match self {
            Self::E4M3 => 0x7E,
            Self::E5M2 => 0x7B,
        }
    }

    /// Returns the largest value: 448 or 57,344.
    pub const fn max(self) -> f32 {
        match self {
            Self::E4M3 => 448.0,
            Self::E5M2 => 57_344.0,
        }
    }

    /// Returns the NaN that [`Fp8::encode`] writes for a positive NaN: `0x7F` or `0x7E`.
    pub const fn nan_code(self) -> u8 {
        match self {
            Self::E4M3 => 0x7F,
            Self::E5M2 => 0x7E,
        }
    }

    /// Returns the code nearest to `x`, ties to even.
    ///
    /// NaN becomes [`Fp8::nan_code`] with the sign of `x`; −0 keeps its sign. A magnitude counts as above the largest
    /// value only if it exceeds it after rounding: 464 lies halfway between 448 and 480, which E4M3 lacks. Ties go to
    /// even, so 464 becomes 448.
    #[inline]
    pub fn encode(self, x: f32, overflow: Overflow) -> u8 {
        let sign = (x.to_bits() >> 24) as u8 & 0x80;
        let magnitude = bits::magnitude(x);
        if magnitude > bits::INFINITE {
            return sign | self.nan_code();
        }
        let code = self.round(magnitude);
        if code <= u32::from(self.max_code()) {
            return sign | code as u8;
        }
        sign | match (overflow, self) {
            (Overflow::Saturate, _) => self.max_code(),
            (Overflow::Special, Self::E4M3) => self.nan_code(),
            (Overflow::Special, Self::E5M2) => 0x7C,
        }
    }

    /// Returns the code of a magnitude as if the exponent had no upper limit.
    #[inline]
    fn round(self, magnitude: u32) -> u32 {
        let dropped = 23 - self.mantissa_bits();
        // The f32 exponent field of the format's smallest normal number, less one.
        let rebias = 127 - self.bias();
        let exponent = magnitude >> 23;
        if exponent > rebias {
            // A carry out of the mantissa increases the exponent by itself.
            return shift_half_even(magnitude, dropped) - (rebias << self.mantissa_bits());
        }
        // Subnormal in the format: count units of its smallest step. An f32 subnormal, or a number whose leading bit
        // is more than one place below that unit, is far below half a unit.
        let shift = dropped + 1 + rebias - exponent;
        if exponent == 0 || shift > 25 {
            return 0;
        }
        shift_half_even((magnitude & 0x7F_FFFF) | 0x80_0000, shift)
    }

    /// Returns the value of a code; exact, since every OFP8 value is an f32.
    #[inline]
    pub fn decode(self, code: u8) -> f32 {
        let sign = u32::from(code & 0x80) << 24;
        let code = code & 0x7F;
        if code > self.max_code() {
            let infinite = matches!(self, Self::E5M2) && code == 0x7C;
            return f32::from_bits(
                sign | if infinite {
                    bits::INFINITE
                } else {
                    0x7FC0_0000
                },
            );
        }
        let mantissa_bits = self.mantissa_bits();
        let exponent = u32::from(code) >> mantissa_bits;
        let magnitude = if exponent == 0 {
            // 2^(1 − bias − mantissa_bits), an f32 of that exponent field.
            let unit = f32::from_bits((128 - self.bias() - mantissa_bits) << 23);
            (f32::from(code) * unit).to_bits()
        } else {
            (u32::from(code) << (23 - mantissa_bits)) + ((127 - self.bias()) << 23)
        };
        f32::from_bits(sign | magnitude)
    }

    /// Returns the scale that maps `abs_max` to the format's largest value: `fl(abs_max / max)`.
    pub fn scale(self, abs_max: f32) -> f32 {
        abs_max / self.max()
    }

    /// Writes the codes of `fl(x / scale)`, saturating.
    ///
    /// `scale` is positive; a scale of 0, or one that is not finite, makes every code 0. `out` has the length of
    /// `values`. O(n), no scratch.
    ///
    /// # Errors
    /// [`QuantError::Length`] for buffers of different lengths; [`QuantError::NotFinite`] at the first NaN or
    /// infinity (the codes before it are written).
    pub fn quantize<T: Element>(
        self,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), QuantError> {
        same_length(values.len(), out.len())?;
        let usable = scale > 0.0 && scale < f32::INFINITY;
        for (index, (value, code)) in values.iter().zip(out).enumerate() {
            let x = value.to_f32();
            if bits::magnitude(x) >= bits::INFINITE {
                return Err(QuantError::NotFinite {
                    index: index as u64,
                });
            }
            *code = if usable {
                self.encode(x / scale, Overflow::Saturate)
            } else {
                0
            };
        }
        Ok(())
    }

    /// Writes `fl(decode(code) · scale)`. `out` has the length of `codes`. O(n), no scratch.
    ///
    /// # Errors
    /// [`QuantError::Length`] for buffers of different lengths.
    pub fn dequantize(self, scale: f32, codes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        same_length(codes.len(), out.len())?;
        for (&code, value) in codes.iter().zip(out) {
            *value = self.decode(code) * scale;
        }
        Ok(())
    }
}

fn same_length(expected: usize, found: usize) -> Result<(), QuantError> {
    if expected == found {
        Ok(())
    } else {
        Err(QuantError::Length { expected, found })
    }
}

/// Returns `value / 2^shift` rounded to the nearest integer, ties to even; `shift` is in 1..=31.
const fn shift_half_even(value: u32, shift: u32) -> u32 {
    let floor = value >> shift;
    let rest = value & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    floor + (rest > half || (rest == half && floor & 1 == 1)) as u32
}
