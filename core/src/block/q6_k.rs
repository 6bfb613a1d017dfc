//! Q6_K: 256 six-bit codes, 16 signed bytes that scale parts of 16, and an f16 scale: 210 bytes.
//!
//! A code is stored as `code + 32`. For value 128 h + 32 n + m (h < 2, n < 4, m < 32), byte 64 h + 32 (n mod 2) + m
//! holds the lower four bits, in its low half if n < 2. Byte 128 + 32 h + m holds the upper two bits, in bits 2 n and
//! 2 n + 1. A value of part p is fl(fl(d · scale_p) · code), with the first product exact: 11 bits times 8. As in
//! ggml's `dequantize_row_q6_K`. The format is read only.

use super::Format;
use super::codec::Decoder;

pub(super) struct Q6K;

impl Decoder<256, 210> for Q6K {
    const FORMAT: Format = Format::Q6K;

    fn unpack(block: &[u8; 210], codes: &mut [i8; 256]) {
        let (low, high) = block.split_at(128);
        let halves = low.as_chunks::<64>().0.iter().zip(high.as_chunks::<32>().0);
        for ((low, high), codes) in halves.zip(codes.as_chunks_mut::<128>().0) {
            let (even, odd) = low.split_at(32);
            let rows = codes.as_chunks_mut::<32>().0.iter_mut();
            let places = [(even, 0), (odd, 0), (even, 4), (odd, 4)];
            for ((row, (low, shift)), up) in rows.zip(places).zip([0, 2, 4, 6]) {
                for ((code, &low), &high) in row.iter_mut().zip(low).zip(high) {
                    *code = ((low >> shift & 15) | (high >> up & 3) << 4) as i8 - 32;
                }
            }
        }
    }
}
