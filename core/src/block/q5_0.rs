//! Q5_0: an f16 scale and 32 five-bit codes: 22 bytes.
//!
//! Codes are stored as `code + 16`. The lower four bits are in bytes 6 to 21, as in Q4_0. The fifth bit of value m is
//! bit m of the little-endian word in bytes 2 to 5. d = (the first x of largest |x|) / −16, so this x gets the code
//! −16. The stored number is `min(31, trunc(fl(fl(x · fl(1/d)) + 16.5)))`, not fused. A block of zeros has d = −0, as
//! in ggml's C reference.

use super::codec::{Choice, Codec, Scales};
use super::{Format, nibbles};

pub(super) struct Q5_0;

impl Codec<32, 22> for Q5_0 {
    const FORMAT: Format = Format::Q5_0;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<Scales> {
        nibbles::from_extreme::<16>(values, codes)
    }

    fn pack(codes: &[i8; 32], block: &mut [u8; 22]) {
        nibbles::pack_fives(&codes.map(|code| code + 16), &mut block[2..]);
    }

    fn unpack(block: &[u8; 22], codes: &mut [i8; 32]) {
        nibbles::unpack_fives(&block[2..], codes);
        for code in codes {
            *code -= 16;
        }
    }
}
