//! Q4_0: an f16 scale and 32 four-bit codes, two a byte: 18 bytes.
//!
//! Byte 2 + m holds value m in its low half and value m + 16 in its high half, as `code + 8`. d = the first x
//! of largest |x|, over −8, so that x gets the code −8; the nibble is `min(15, trunc(fl(fl(x · fl(1/d)) +
//! 8.5)))`, unfused. A block of zeros has d = −0, as ggml's C reference has it (the NumPy package takes the
//! sign of its first zero).

use half::f16;

use super::codec::{Choice, Codec, leading_scale};
use crate::number::bits;

pub(super) struct Q4_0;

impl Codec<32, 18> for Q4_0 {
    const TERNARY: bool = false;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<f32> {
        let largest = values.iter().fold(0, |max, &x| bits::magnitude(x).max(max));
        let first = values.iter().find(|&&x| bits::magnitude(x) == largest);
        let extreme = first.map_or(0.0, |&x| if largest == 0 { 0.0 } else { x });
        let scale = extreme / -8.0;
        if scale == 0.0 {
            // Also where the extreme over 8 rounds to nothing, as in the reference.
            codes.fill(0);
            return Some(scale);
        }
        let inverse = 1.0 / scale;
        if !inverse.is_finite() {
            return None;
        }
        for (code, &x) in codes.iter_mut().zip(values) {
            // x · inverse lies in −8..=8 up to rounding, so the sum is positive.
            let nibble = (x * inverse + 8.5) as i32;
            *code = (nibble.min(15) - 8) as i8;
        }
        Some(scale)
    }

    fn pack(codes: &[i8; 32], scale: f16, block: &mut [u8; 18]) {
        let (head, packed) = block.split_at_mut(2);
        head.copy_from_slice(&scale.to_le_bytes());
        let (low, high) = codes.split_at(16);
        for (byte, (&low, &high)) in packed.iter_mut().zip(low.iter().zip(high)) {
            *byte = (low + 8) as u8 | ((high + 8) as u8) << 4;
        }
    }

    fn unpack(block: &[u8; 18], codes: &mut [i8; 32]) {
        let (low, high) = codes.split_at_mut(16);
        for (&byte, (low, high)) in block[2..].iter().zip(low.iter_mut().zip(high)) {
            *low = (byte & 15) as i8 - 8;
            *high = (byte >> 4) as i8 - 8;
        }
    }

    fn scale(block: &[u8; 18]) -> f16 {
        leading_scale(block)
    }
}
