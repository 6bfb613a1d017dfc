//! Q8_0: an f16 scale and 32 signed bytes: 34 bytes.
//!
//! d = fl(max|x| / 127); code = `fl(x · fl(1/d))` rounded half away from zero. The codes use d before it is rounded
//! to f16, as in ggml's reference.

use super::Format;
use super::codec::{Choice, Codec, Scales};
use crate::number::bits;

pub(super) struct Q8_0;

impl Codec<32, 34> for Q8_0 {
    const FORMAT: Format = Format::Q8_0;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<Scales> {
        let largest = values.iter().fold(0, |max, &x| bits::magnitude(x).max(max));
        let scale = f32::from_bits(largest) / 127.0;
        if scale == 0.0 {
            // This also applies if max|x| / 127 rounds to 0, as in the reference.
            codes.fill(0);
            return Some(Scales::default());
        }
        let inverse = 1.0 / scale;
        if !inverse.is_finite() {
            return None;
        }
        for (code, &x) in codes.iter_mut().zip(values) {
            *code = round_byte(x * inverse);
        }
        Some(scale.into())
    }

    fn pack(codes: &[i8; 32], block: &mut [u8; 34]) {
        let (_, packed) = block.split_at_mut(2);
        for (byte, &code) in packed.iter_mut().zip(codes) {
            *byte = code as u8;
        }
    }

    fn unpack(block: &[u8; 34], codes: &mut [i8; 32]) {
        for (code, &byte) in codes.iter_mut().zip(&block[2..]) {
            *code = byte as i8;
        }
    }
}

/// Rounds `x` half away from zero, for |x| < 128 (for larger values only the low bits are kept).
///
/// Adding 2²³ leaves an integer in the low mantissa bits, rounded half to even. Only if an exact half was rounded
/// down, |x| − rounded (exact) equals ½; those are increased by one. No branch, so it runs in vectors.
fn round_byte(x: f32) -> i8 {
    const SHIFT: f32 = 8_388_608.0;
    let magnitude = x.abs();
    let shifted = magnitude + SHIFT;
    let tie_down = magnitude - (shifted - SHIFT) == 0.5;
    let rounded = (shifted.to_bits() & 0xFF) as i32 + tie_down as i32;
    (if x < 0.0 { -rounded } else { rounded }) as i8
}

#[cfg(test)]
mod tests {
    use super::round_byte;
    use crate::number::round::half_away;

    #[test]
    fn round_byte_equals_half_away() {
        for magnitude in (0..=127.5f32.to_bits()).step_by(61) {
            let x = f32::from_bits(magnitude);
            if x < 127.5 {
                assert_eq!(f32::from(round_byte(x)), half_away(x), "{x}");
                assert_eq!(f32::from(round_byte(-x)), half_away(-x), "-{x}");
            }
        }
        for half in 0..127 {
            for step in [-1i32, 0, 1] {
                let bits = (half as f32 + 0.5).to_bits().wrapping_add_signed(step);
                let x = f32::from_bits(bits);
                assert_eq!(f32::from(round_byte(x)), half_away(x), "{x}");
                assert_eq!(f32::from(round_byte(-x)), half_away(-x), "-{x}");
            }
        }
    }
}
