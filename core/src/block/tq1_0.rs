//! TQ1_0: 256 ternary digits, five per byte, and an f16 scale: 54 bytes.
//!
//! | bytes | values |
//! |---|---|
//! | 0..32 | byte m holds values m, m + 32, … m + 128 |
//! | 32..48 | byte 32 + m holds values 160 + m + 16 n, n < 5 |
//! | 48..52 | byte 48 + m holds values 240 + m + 4 n, n < 4, and a last digit 0 |
//! | 52..54 | the scale, little-endian |
//!
//! A byte is a base-3 fraction. The digits `code + 1`, with the first value's as the most significant, form v < 243,
//! which is stored as ⌈256 v / 243⌉. Digit n is decoded without division: the byte times 3ⁿ modulo 256 removes the
//! digits before it, and the top of that times 3 is the digit. Rounding up adds less than one unit of 1/256 to the
//! fraction; even after five steps (× 3⁵ < 256) this does not reach the next digit.

use super::Format;
use super::codec::{Choice, Codec, Scales};
use super::ternary;

/// Powers of 3 below 256.
const POWERS: [u8; 5] = [1, 3, 9, 27, 81];

pub(super) struct Tq1_0;

impl Codec<256, 54> for Tq1_0 {
    const FORMAT: Format = Format::Tq1_0;

    fn quantize(values: &[f32; 256], choice: Choice, codes: &mut [i8; 256]) -> Option<Scales> {
        ternary::quantize(values, choice, codes).map(Scales::from)
    }

    fn pack(codes: &[i8; 256], block: &mut [u8; 54]) {
        let (a, b, c) = (&codes[..160], &codes[160..240], &codes[240..]);
        pack_digits::<32>(a, &mut block[..32]);
        pack_digits::<16>(b, &mut block[32..48]);
        pack_digits::<4>(c, &mut block[48..52]);
    }

    fn unpack(block: &[u8; 54], codes: &mut [i8; 256]) {
        unpack_digits::<32>(&block[..32], &mut codes[..160]);
        unpack_digits::<16>(&block[32..48], &mut codes[160..240]);
        unpack_digits::<4>(&block[48..52], &mut codes[240..]);
    }
}

/// Packs up to five lanes of `STRIDE` codes into `STRIDE` bytes; missing lanes at the end count as digit 0.
pub(crate) fn pack_digits<const STRIDE: usize>(codes: &[i8], bytes: &mut [u8]) {
    let mut values = [0u16; STRIDE];
    let mut lanes = codes.chunks_exact(STRIDE);
    for _ in POWERS {
        for value in &mut values {
            *value *= 3;
        }
        for (value, &code) in values.iter_mut().zip(lanes.next().unwrap_or(&[])) {
            *value += u16::from((code + 1) as u8);
        }
    }
    for (byte, value) in bytes.iter_mut().zip(values) {
        *byte = (value * 256).div_ceil(243) as u8;
    }
}

/// The inverse of [`pack_digits`]; any byte gives codes −1..=1.
pub(crate) fn unpack_digits<const STRIDE: usize>(bytes: &[u8], codes: &mut [i8]) {
    for (lane, power) in codes.chunks_exact_mut(STRIDE).zip(POWERS) {
        for (code, &byte) in lane.iter_mut().zip(bytes) {
            let fraction = u16::from(byte.wrapping_mul(power));
            *code = ((fraction * 3) >> 8) as i8 - 1;
        }
    }
}
