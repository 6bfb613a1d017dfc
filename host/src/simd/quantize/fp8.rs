//! Eight-bit floats: [`Fp8::quantize`] and [`Fp8::dequantize`] without branches, in lanes made by the compiler.

use tercet_core::number::bits;
use tercet_core::quant::fp8::Fp8;

use super::lanes::{Quantizing, VECTORS, Value};
use crate::simd::stores::{self, Ahead, LINE, Stores};

/// A format by its number of mantissa bits: 3 for E4M3, 2 for E5M2.
struct Format<const MANTISSA: u32>;

impl<const MANTISSA: u32> Format<MANTISSA> {
    const FP8: Fp8 = match MANTISSA {
        3 => Fp8::E4M3,
        _ => Fp8::E5M2,
    };
    const MAX: u32 = Self::FP8.max_code() as u32;
    /// Bits of an f32's mantissa that codes lack.
    const DROPPED: u32 = 23 - MANTISSA;
    /// An f32's exponent field less a code's.
    const REBIAS: u32 = 127 - ((1 << (6 - MANTISSA)) - 1);
    /// The format's smallest normal number.
    const NORMAL: u32 = (Self::REBIAS + 1) << 23;
    /// Its smallest number, the unit of the subnormal ones.
    const UNIT: f32 = f32::from_bits((Self::REBIAS + 1 - MANTISSA) << 23);
    /// 2²³ units: from here on an f32 is a whole number of units, to which an addition rounds, to nearest with ties to
    /// even.
    const UNITS: f32 = f32::from_bits((Self::REBIAS + 1 - MANTISSA + 23) << 23);

    /// Does [`Fp8::encode`], saturating, for a value that is not NaN.
    #[inline(always)]
    fn encode(x: f32) -> u8 {
        let sign = x.to_bits() >> 24 & 0x80;
        let magnitude = x.to_bits() & i32::MAX as u32;
        let odd = magnitude >> Self::DROPPED & 1;
        let rounded = magnitude + ((1 << (Self::DROPPED - 1)) - 1) + odd;
        let normal = (rounded >> Self::DROPPED).wrapping_sub(Self::REBIAS << MANTISSA);
        // Most numbers are not so few units; the sum is then meaningless and not used.
        let units = f32::from_bits(magnitude) + Self::UNITS;
        let subnormal = units.to_bits().wrapping_sub(Self::UNITS.to_bits());
        let code = match magnitude < Self::NORMAL {
            true => subnormal,
            false => normal,
        };
        (code.min(Self::MAX) | sign) as u8
    }

    /// Does [`Fp8::decode`].
    #[inline(always)]
    fn decode(code: u8) -> f32 {
        let sign = u32::from(code & 0x80) << 24;
        let code = u32::from(code & 0x7F);
        let normal = (code << Self::DROPPED) + (Self::REBIAS << 23);
        let subnormal = (code as i32 as f32 * Self::UNIT).to_bits();
        let magnitude = match code < 1 << MANTISSA {
            true => subnormal,
            false => normal,
        };
        let special = match MANTISSA == 2 && code == Self::MAX + 1 {
            true => bits::INFINITE,
            false => 0x7FC0_0000,
        };
        let magnitude = match code > Self::MAX {
            true => special,
            false => magnitude,
        };
        f32::from_bits(sign | magnitude)
    }
}

/// Writes codes of `fl(x / scale)`, for a scale that is positive and finite; false if a value is not finite, whose code
/// is then unspecified.
#[inline(always)]
pub(in crate::simd) fn quantize<S: Quantizing, T: Value>(
    set: S,
    format: Fp8,
    scale: f32,
    values: &[T],
    codes: &mut [u8],
    stores: Stores,
    ahead: Ahead,
) -> bool {
    // SAFETY: the bytes of the slice, which has no other reference; an i8 is any byte.
    let codes = unsafe { std::slice::from_raw_parts_mut(codes.as_mut_ptr().cast(), codes.len()) };
    match format {
        Fp8::E4M3 => encode::<S, T, 3>(set, scale, values, codes, stores, ahead),
        Fp8::E5M2 => encode::<S, T, 2>(set, scale, values, codes, stores, ahead),
    }
}

/// Does [`quantize`] for a format.
#[inline(always)]
fn encode<S: Quantizing, T: Value, const MANTISSA: u32>(
    set: S,
    scale: f32,
    values: &[T],
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> bool {
    let mut kernel = Kernel::<S, MANTISSA> {
        scale,
        ahead,
        largest: 0,
        set,
    };
    stores.lines(values, codes, &mut kernel);
    kernel.largest < bits::INFINITE
}

/// The loop over lines, and its results.
struct Kernel<S, const MANTISSA: u32> {
    scale: f32,
    ahead: Ahead,
    /// The largest magnitude's pattern.
    largest: u32,
    set: S,
}

impl<S: Quantizing, T: Value, const MANTISSA: u32> stores::Kernel<T> for Kernel<S, MANTISSA> {
    #[inline(always)]
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool) {
        let set = self.set;
        let mut largest = [0; LINE];
        for (values, codes) in values.chunks_exact(LINE).zip(codes.chunks_exact_mut(LINE)) {
            self.ahead.ask_step(values);
            let (mut wide, mut line) = ([0.0f32; LINE], [0; LINE]);
            for at in (0..LINE).step_by(set.lanes()) {
                set.write(set.values(&values[at..]), &mut wide[at..]);
            }
            for ((code, largest), x) in line.iter_mut().zip(&mut largest).zip(wide) {
                *largest = bits::magnitude(x).max(*largest);
                *code = Format::<MANTISSA>::encode(x / self.scale) as i8;
            }
            let step = VECTORS * set.lanes();
            for (from, to) in line.chunks_exact(step).zip(codes.chunks_exact_mut(step)) {
                set.write_codes(set.read_codes(from), to, streaming);
            }
        }
        self.largest = largest.into_iter().fold(self.largest, u32::max);
    }
}

/// Writes `fl(decode(code) · scale)` for each code. (Compiled for a set if its code calls it.)
#[inline(always)]
pub(in crate::simd) fn dequantize(format: Fp8, scale: f32, codes: &[u8], out: &mut [f32]) {
    match format {
        Fp8::E4M3 => decode::<3>(scale, codes, out),
        Fp8::E5M2 => decode::<2>(scale, codes, out),
    }
}

#[inline(always)]
fn decode<const MANTISSA: u32>(scale: f32, codes: &[u8], out: &mut [f32]) {
    for (&code, out) in codes.iter().zip(out) {
        *out = Format::<MANTISSA>::decode(code) * scale;
    }
}
