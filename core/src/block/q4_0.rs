//! Q4_0: an f16 scale and 32 four-bit codes, two per byte: 18 bytes.
//!
//! Byte 2 + m holds value m in its low half and value m + 16 in its high half, as `code + 8`. d = (the first x of
//! largest |x|) / −8, so this x gets the code −8. The nibble is `min(15, trunc(fl(fl(x · fl(1/d)) + 8.5)))`, not
//! fused. A block of zeros has d = −0, as in ggml's C reference (the NumPy package takes the sign of its first zero).

use super::codec::{Choice, Codec, Scales};
use super::{Format, nibbles};

pub(super) struct Q4_0;

impl Codec<32, 18> for Q4_0 {
    const FORMAT: Format = Format::Q4_0;

    fn quantize(values: &[f32; 32], _: Choice, codes: &mut [i8; 32]) -> Option<Scales> {
        nibbles::from_extreme::<8>(values, codes)
    }

    fn pack(codes: &[i8; 32], block: &mut [u8; 18]) {
        nibbles::pack::<-8>(codes, &mut block[2..]);
    }

    fn unpack(block: &[u8; 18], codes: &mut [i8; 32]) {
        nibbles::unpack::<-8>(&block[2..], codes);
    }
}
