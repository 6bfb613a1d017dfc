//! Unsigned codes of blocks, one byte each, for each format.
//!
//! A code is the stored number: the weight plus [`offset_of`]. The loops are compiled inside functions of a set.

use half::f16;
use tercet_core::block::Format;

/// The blocks of a format: `LEN` values in `BYTES` bytes.
pub(in crate::simd) trait Codes<const LEN: usize, const BYTES: usize> {
    /// The format.
    const FORMAT: Format;

    /// Writes a block's codes.
    fn unpack(block: &[u8; BYTES], codes: &mut [u8; LEN]);

    /// Returns the factors of the scale and of the minimum, for each part.
    #[inline(always)]
    fn factors(_: &[u8; BYTES]) -> ([i16; MOST_PARTS], [i16; MOST_PARTS]) {
        ([1; MOST_PARTS], [1; MOST_PARTS])
    }
}

/// Maximum number of parts per block.
pub(in crate::simd) const MOST_PARTS: usize = 16;

/// Blocks of 32 codes that are chosen from their largest magnitude or, if there is a minimum, relative to that: the
/// formats of [`super::loops`].
pub(in crate::simd) trait Block32<const BYTES: usize>: Codes<32, BYTES> {
    /// Writes a block's codes.
    fn pack(codes: &[u8; 32], block: &mut [u8; BYTES]);
}

/// Calls a function that is generic in [`Codes`] with those of a format.
macro_rules! with_codes {
    ($format:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::simd::blocks::codes;
        use tercet_core::block::Format;
        match $format {
            Format::Tq1_0 => $function::<codes::Tq1_0, 256, 54>($($argument),*),
            Format::Tq2_0 => $function::<codes::Tq2_0, 256, 66>($($argument),*),
            Format::Q2_0 => $function::<codes::Q2_0, 64, 18>($($argument),*),
            Format::Q8_0 => $function::<codes::Q8_0, 32, 34>($($argument),*),
            Format::Q4_0 => $function::<codes::Q4_0, 32, 18>($($argument),*),
            Format::Q4_1 => $function::<codes::Q4_1, 32, 20>($($argument),*),
            Format::Q5_0 => $function::<codes::Q5_0, 32, 22>($($argument),*),
            Format::Q5_1 => $function::<codes::Q5_1, 32, 24>($($argument),*),
            Format::Q4K => $function::<codes::Q4K, 256, 144>($($argument),*),
            Format::Q6K => $function::<codes::Q6K, 256, 210>($($argument),*),
        }
    }};
}
pub(in crate::simd) use with_codes;

/// Calls a function that is generic in [`Block32`] with the codes of a format; `None` for formats that every set has
/// its own kernels for.
macro_rules! with_block32 {
    ($format:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::simd::blocks::codes;
        use tercet_core::block::Format;
        match $format {
            Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 | Format::Q8_0 | Format::Q4_0 => None,
            Format::Q4K | Format::Q6K => None,
            Format::Q4_1 => Some($function::<codes::Q4_1, 20>($($argument),*)),
            Format::Q5_0 => Some($function::<codes::Q5_0, 22>($($argument),*)),
            Format::Q5_1 => Some($function::<codes::Q5_1, 24>($($argument),*)),
        }
    }};
}
pub(in crate::simd) use with_block32;

/// Calls a function that is generic in [`Codes`] with those of a format whose blocks have several parts; `None` for the
/// others.
macro_rules! with_parts {
    ($format:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::simd::blocks::codes;
        use tercet_core::block::Format;
        match $format {
            Format::Q4K => Some($function::<codes::Q4K, 144>($($argument),*)),
            Format::Q6K => Some($function::<codes::Q6K, 210>($($argument),*)),
            _ => None,
        }
    }};
}
pub(in crate::simd) use with_parts;

/// Returns by how much unsigned codes are larger than weights.
pub(in crate::simd) const fn offset_of(format: Format) -> i32 {
    -(format.codes().0 as i32)
}

pub(in crate::simd) struct Tq1_0;

impl Codes<256, 54> for Tq1_0 {
    const FORMAT: Format = Format::Tq1_0;

    #[inline(always)]
    fn unpack(block: &[u8; 54], codes: &mut [u8; 256]) {
        digits::<32>(&block[..32], &mut codes[..160]);
        digits::<16>(&block[32..48], &mut codes[160..240]);
        digits::<4>(&block[48..52], &mut codes[240..]);
    }
}

pub(in crate::simd) struct Tq2_0;

impl Codes<256, 66> for Tq2_0 {
    const FORMAT: Format = Format::Tq2_0;

    #[inline(always)]
    fn unpack(block: &[u8; 66], codes: &mut [u8; 256]) {
        for (half, codes) in codes.as_chunks_mut::<128>().0.iter_mut().enumerate() {
            for m in 0..32 {
                let byte = block[32 * half + m];
                for field in 0..4 {
                    codes[32 * field + m] = (byte >> (2 * field)) & 3;
                }
            }
        }
    }
}

pub(in crate::simd) struct Q2_0;

impl Codes<64, 18> for Q2_0 {
    const FORMAT: Format = Format::Q2_0;

    #[inline(always)]
    fn unpack(block: &[u8; 18], codes: &mut [u8; 64]) {
        for (codes, &byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(&block[2..]) {
            // Moves four fields to four bytes: first 4 bits apart, then 8.
            let nibbles = (u32::from(byte) | u32::from(byte) << 12) & 0x000F_000F;
            let fields = (nibbles | nibbles << 6) & 0x0303_0303;
            *codes = fields.to_le_bytes();
        }
    }
}

pub(in crate::simd) struct Q8_0;

impl Codes<32, 34> for Q8_0 {
    const FORMAT: Format = Format::Q8_0;

    #[inline(always)]
    fn unpack(block: &[u8; 34], codes: &mut [u8; 32]) {
        flip(&block[2..], codes);
    }
}

pub(in crate::simd) struct Q4_0;

impl Codes<32, 18> for Q4_0 {
    const FORMAT: Format = Format::Q4_0;

    #[inline(always)]
    fn unpack(block: &[u8; 18], codes: &mut [u8; 32]) {
        nibbles(&block[2..], codes);
    }
}

pub(in crate::simd) struct Q4_1;

impl Codes<32, 20> for Q4_1 {
    const FORMAT: Format = Format::Q4_1;

    #[inline(always)]
    fn unpack(block: &[u8; 20], codes: &mut [u8; 32]) {
        nibbles(&block[4..], codes);
    }
}

impl Block32<20> for Q4_1 {
    #[inline(always)]
    fn pack(codes: &[u8; 32], block: &mut [u8; 20]) {
        pack_nibbles(codes, &mut block[4..]);
    }
}

pub(in crate::simd) struct Q5_0;

impl Codes<32, 22> for Q5_0 {
    const FORMAT: Format = Format::Q5_0;

    #[inline(always)]
    fn unpack(block: &[u8; 22], codes: &mut [u8; 32]) {
        nibbles(&block[6..], codes);
        fifths(&block[2..6], codes);
    }
}

impl Block32<22> for Q5_0 {
    #[inline(always)]
    fn pack(codes: &[u8; 32], block: &mut [u8; 22]) {
        pack_fives(codes, &mut block[2..]);
    }
}

pub(in crate::simd) struct Q5_1;

impl Codes<32, 24> for Q5_1 {
    const FORMAT: Format = Format::Q5_1;

    #[inline(always)]
    fn unpack(block: &[u8; 24], codes: &mut [u8; 32]) {
        nibbles(&block[8..], codes);
        fifths(&block[4..8], codes);
    }
}

impl Block32<24> for Q5_1 {
    #[inline(always)]
    fn pack(codes: &[u8; 32], block: &mut [u8; 24]) {
        pack_fives(codes, &mut block[4..]);
    }
}

pub(in crate::simd) struct Q4K;

impl Codes<256, 144> for Q4K {
    const FORMAT: Format = Format::Q4K;

    #[inline(always)]
    fn unpack(block: &[u8; 144], codes: &mut [u8; 256]) {
        for (bytes, codes) in block[16..]
            .as_chunks::<32>()
            .0
            .iter()
            .zip(codes.as_chunks_mut::<64>().0)
        {
            for m in 0..32 {
                codes[m] = bytes[m] & 15;
                codes[32 + m] = bytes[m] >> 4;
            }
        }
    }

    #[inline(always)]
    fn factors(block: &[u8; 144]) -> ([i16; MOST_PARTS], [i16; MOST_PARTS]) {
        let word = |at: usize| {
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let (scales, mins, both) = (word(4), word(8), word(12));
        // Four six-bit factors per word: two bits of later ones are above the six of each, their other four in `both`.
        let whole = |word: u32| u64::from(word & 0x3F3F_3F3F);
        let parted = |low: u32, high: u32| {
            u64::from(low & 0x0F0F_0F0F | (high >> 6 & 0x0303_0303) << 4) << 32
        };
        let scales = (whole(scales) | parted(both, scales)).to_le_bytes();
        let mins = (whole(mins) | parted(both >> 4, mins)).to_le_bytes();
        let (mut of_scale, mut of_min) = ([0; MOST_PARTS], [0; MOST_PARTS]);
        for part in 0..8 {
            of_scale[part] = i16::from(scales[part]);
            of_min[part] = -i16::from(mins[part]);
        }
        (of_scale, of_min)
    }
}

pub(in crate::simd) struct Q6K;

impl Codes<256, 210> for Q6K {
    const FORMAT: Format = Format::Q6K;

    #[inline(always)]
    fn unpack(block: &[u8; 210], codes: &mut [u8; 256]) {
        for (half, codes) in codes.as_chunks_mut::<128>().0.iter_mut().enumerate() {
            for m in 0..32 {
                let (first, second) = (block[64 * half + m], block[64 * half + 32 + m]);
                let high = block[128 + 32 * half + m];
                codes[m] = first & 15 | high << 4 & 48;
                codes[32 + m] = second & 15 | high << 2 & 48;
                codes[64 + m] = first >> 4 | high & 48;
                codes[96 + m] = second >> 4 | high >> 2 & 48;
            }
        }
    }

    #[inline(always)]
    fn factors(block: &[u8; 210]) -> ([i16; MOST_PARTS], [i16; MOST_PARTS]) {
        let mut of_scale = [0; MOST_PARTS];
        for (factor, &byte) in of_scale.iter_mut().zip(&block[192..]) {
            *factor = i16::from(byte.cast_signed());
        }
        (of_scale, [0; MOST_PARTS])
    }
}

/// Writes the codes of whole blocks.
#[inline(always)]
pub(in crate::simd) fn each<C, const LEN: usize, const BYTES: usize>(bytes: &[u8], out: &mut [u8])
where
    C: Codes<LEN, BYTES>,
{
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (block, codes) in blocks.iter().zip(out.as_chunks_mut::<LEN>().0) {
        C::unpack(block, codes);
    }
}

/// Converts signed bytes to codes larger by 128.
#[inline(always)]
pub(in crate::simd) fn flip(bytes: &[u8], out: &mut [u8]) {
    for (out, &byte) in out.iter_mut().zip(bytes) {
        *out = byte ^ 0x80;
    }
}

/// Reads code m from the lower half of byte m, code m + 16 from its upper half.
#[inline(always)]
fn nibbles(bytes: &[u8], codes: &mut [u8; 32]) {
    for m in 0..16 {
        codes[m] = bytes[m] & 15;
        codes[16 + m] = bytes[m] >> 4;
    }
}

/// Does the inverse of [`nibbles`]; a code's fifth bit is left out.
#[inline(always)]
fn pack_nibbles(codes: &[u8; 32], bytes: &mut [u8]) {
    for m in 0..16 {
        bytes[m] = codes[m] & 15 | codes[16 + m] << 4;
    }
}

/// Writes four bytes of fifth bits, then [`pack_nibbles`].
#[inline(always)]
fn pack_fives(codes: &[u8; 32], bytes: &mut [u8]) {
    let (fifths, bytes) = bytes.split_at_mut(4);
    for (fifths, &eight) in fifths.iter_mut().zip(codes.as_chunks::<8>().0) {
        let bits = u64::from_le_bytes(eight) >> 4 & 0x0101_0101_0101_0101;
        // Moves bit 0 of byte m to bit 56 + m; no two collide below.
        *fifths = (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    }
    pack_nibbles(codes, bytes);
}

/// Adds the fifth bit of code m, bit m of four little-endian bytes.
#[inline(always)]
fn fifths(bytes: &[u8], codes: &mut [u8; 32]) {
    for (m, code) in codes.iter_mut().enumerate() {
        let is_set = bytes[m / 8] & (1 << (m % 8)) != 0;
        *code |= if is_set { 16 } else { 0 };
    }
}

/// Reads the digits of bytes that hold five, or four, digits of `STRIDE` columns.
#[inline(always)]
pub(in crate::simd) fn digits<const STRIDE: usize>(bytes: &[u8], codes: &mut [u8]) {
    for (codes, power) in codes.chunks_exact_mut(STRIDE).zip([1u8, 3, 9, 27, 81]) {
        for (code, &byte) in codes.iter_mut().zip(bytes) {
            *code = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
        }
    }
}

/// Returns a finite f16 of a block times 2²⁴, which is an integer.
#[inline]
pub(in crate::simd) fn fixed(f16: f16) -> i64 {
    let bits = f16.to_bits();
    let mantissa = i64::from(bits & 0x3FF);
    let magnitude = match (bits >> 10) & 31 {
        // Subnormal.
        0 => mantissa,
        exponent => (mantissa | 0x400) << (exponent - 1),
    };
    if bits >> 15 == 0 {
        magnitude
    } else {
        -magnitude
    }
}
