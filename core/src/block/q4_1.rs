//! Q4_1: an f16 scale, an f16 minimum and 32 four-bit codes, two per byte: 20 bytes.
//!
//! Byte 4 + m holds value m in its low half and value m + 16 in its high half. The minimum is the first of the
//! smallest x, d = fl(fl(max − min) / 15), and a code is `min(15, trunc(fl(fl(fl(x − min) · fl(1/d)) + 0.5)))`, not
//! fused.

use super::codec::{Choice, Codec, Scales};
use super::{Format, nibbles};

pub(super) struct Q4_1;

impl Codec<32, 20> for Q4_1 {
    const FORMAT: Format = Format::Q4_1;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<Scales> {
        nibbles::from_minimum::<15>(values, codes)
    }

    fn pack(codes: &[i8; 32], block: &mut [u8; 20]) {
        nibbles::pack::<0>(codes, &mut block[4..]);
    }

    fn unpack(block: &[u8; 20], codes: &mut [i8; 32]) {
        nibbles::unpack::<0>(&block[4..], codes);
    }
}
