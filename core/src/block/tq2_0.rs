//! TQ2_0: 256 two-bit codes, four per byte, and an f16 scale: 66 bytes.
//!
//! Byte 32 h + m (h < 2, m < 32) holds values 128 h + m + 32 n as `code + 1` in bits 2 n and 2 n + 1. The
//! little-endian scale follows. The encoder writes codes −1..=1; the bits 3 decode to +2.

use super::Format;
use super::codec::{Choice, Codec, Scales};
use super::ternary;

pub(super) struct Tq2_0;

impl Codec<256, 66> for Tq2_0 {
    const FORMAT: Format = Format::Tq2_0;

    fn quantize(values: &[f32; 256], choice: Choice, codes: &mut [i8; 256]) -> Option<Scales> {
        ternary::quantize(values, choice, codes).map(Scales::from)
    }

    fn pack(codes: &[i8; 256], block: &mut [u8; 66]) {
        let (packed, _) = block.split_at_mut(64);
        packed.fill(0);
        let packed = packed.as_chunks_mut::<32>().0;
        for (bytes, codes) in packed.iter_mut().zip(codes.as_chunks::<128>().0) {
            for (lane, shift) in codes.as_chunks::<32>().0.iter().zip([0, 2, 4, 6]) {
                for (byte, &code) in bytes.iter_mut().zip(lane) {
                    *byte |= ((code + 1) as u8 & 3) << shift;
                }
            }
        }
    }

    fn unpack(block: &[u8; 66], codes: &mut [i8; 256]) {
        let packed = block.as_chunks::<32>().0;
        for (bytes, codes) in packed.iter().zip(codes.as_chunks_mut::<128>().0) {
            for (lane, shift) in codes.as_chunks_mut::<32>().0.iter_mut().zip([0, 2, 4, 6]) {
                for (code, &byte) in lane.iter_mut().zip(bytes) {
                    *code = ((byte >> shift) & 3) as i8 - 1;
                }
            }
        }
    }
}
