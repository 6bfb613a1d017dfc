//! Q4_K: an f16 scale, an f16 for minima, 12 bytes of six-bit scales and minima of eight parts, and 256 four-bit
//! codes: 144 bytes.
//!
//! Byte 16 + 32 h + m (h < 4, m < 32) holds value 64 h + m in its low half and value 64 h + 32 + m in its high half.
//! A value of part p is fl(fl(d · scale_p) · code − fl(dmin · min_p)), with exact products: 11 bits times 6 times 4.
//! As in ggml's `dequantize_row_q4_K`. The format is read only.

use super::Format;
use super::codec::Decoder;

pub(super) struct Q4K;

impl Decoder<256, 144> for Q4K {
    const FORMAT: Format = Format::Q4K;

    fn unpack(block: &[u8; 144], codes: &mut [i8; 256]) {
        let bytes = block[16..].as_chunks::<32>().0;
        for (bytes, codes) in bytes.iter().zip(codes.as_chunks_mut::<64>().0) {
            let (low, high) = codes.split_at_mut(32);
            for (&byte, (low, high)) in bytes.iter().zip(low.iter_mut().zip(high)) {
                *low = (byte & 15) as i8;
                *high = (byte >> 4) as i8;
            }
        }
    }
}
