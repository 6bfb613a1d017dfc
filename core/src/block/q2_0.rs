//! Q2_0 (ggml type 42): an f16 scale and 64 two-bit codes, four per byte: 18 bytes.
//!
//! Byte 2 + m holds values 4 m + n as `code + 1` in bits 2 n and 2 n + 1. ggml's reference divides by max|x|, so its
//! codes are −1..=1 too; the bits 3 decode to +2. A fork uses the same name for groups of 128.

use super::Format;
use super::codec::{Choice, Codec, Scales};
use super::ternary;

pub(super) struct Q2_0;

impl Codec<64, 18> for Q2_0 {
    const FORMAT: Format = Format::Q2_0;

    fn quantize(values: &[f32; 64], choice: Choice, codes: &mut [i8; 64]) -> Option<Scales> {
        ternary::quantize(values, choice, codes).map(Scales::from)
    }

    fn pack(codes: &[i8; 64], block: &mut [u8; 18]) {
        let (_, packed) = block.split_at_mut(2);
        for (byte, codes) in packed.iter_mut().zip(codes.chunks_exact(4)) {
            *byte = codes
                .iter()
                .rev()
                .fold(0, |byte, &code| byte << 2 | ((code + 1) as u8 & 3));
        }
    }

    fn unpack(block: &[u8; 18], codes: &mut [i8; 64]) {
        for (&byte, codes) in block[2..].iter().zip(codes.chunks_exact_mut(4)) {
            for (code, shift) in codes.iter_mut().zip([0, 2, 4, 6]) {
                *code = ((byte >> shift) & 3) as i8 - 1;
            }
        }
    }
}
