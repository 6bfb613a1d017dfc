//! Q5_1: an f16 scale, an f16 minimum and 32 five-bit codes: 24 bytes.
//!
//! The lower four bits are in bytes 8 to 23, as in Q4_0. The fifth bit of value m is bit m of the little-endian word
//! in bytes 4 to 7. The minimum is the first of the smallest x, d = fl(fl(max − min) / 31), and a code is
//! `trunc(fl(fl(fl(x − min) · fl(1/d)) + 0.5))`, not fused.

use super::codec::{Choice, Codec, Scales};
use super::{Format, nibbles};

pub(super) struct Q5_1;

impl Codec<32, 24> for Q5_1 {
    const FORMAT: Format = Format::Q5_1;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<Scales> {
        nibbles::from_minimum::<31>(values, codes)
    }

    fn pack(codes: &[i8; 32], block: &mut [u8; 24]) {
        nibbles::pack_fives(codes, &mut block[4..]);
    }

    fn unpack(block: &[u8; 24], codes: &mut [i8; 32]) {
        nibbles::unpack_fives(&block[4..], codes);
    }
}
