//! The block formats: names, numbers and sizes.

use half::f16;

use super::BlockError;

/// A block format of GGUF files: a fixed number of values in a fixed number of bytes.
///
/// | format | values | bytes | bits per value | codes | scale |
/// |---|---|---|---|---|---|
/// | TQ1_0 | 256 | 54 | 1.6875 | −1..=1 | max\|x\| |
/// | TQ2_0 | 256 | 66 | 2.0625 | −1..=1, decodes −1..=2 | max\|x\| |
/// | Q2_0 | 64 | 18 | 2.25 | −1..=1, decodes −1..=2 | max\|x\| |
/// | Q4_0 | 32 | 18 | 4.5 | −8..=7 | (first x of largest \|x\|) / −8 |
/// | Q4_1 | 32 | 20 | 5 | 0..=15 | (max x − min x) / 15, and a minimum |
/// | Q5_0 | 32 | 22 | 5.5 | −16..=15 | (first x of largest \|x\|) / −16 |
/// | Q5_1 | 32 | 24 | 6 | 0..=31 | (max x − min x) / 31, and a minimum |
/// | Q8_0 | 32 | 34 | 8.5 | −127..=127, decodes −128 too | max\|x\| / 127 |
/// | Q4_K | 256 | 144 | 4.5 | 0..=15 | read only; 8 parts, and minima |
/// | Q6_K | 256 | 210 | 6.5625 | −32..=31 | read only; 16 parts |
///
/// A value is `code · scale`, or `code · scale + minimum` if a block has a minimum; both are f16. The blocks of
/// K-quants consist of **parts** ([`Format::parts`]) with their own small integers, which are factors of the block's
/// scale and minimum ([`Format::factors`]). They can be decoded and multiplied, but not encoded
/// ([`Format::can_encode`]). Forks of llama.cpp reuse type numbers for blocks of other sizes: compare a tensor's byte
/// size with [`Format::encoded_len`] before decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Format {
    /// Five ternary digits per byte.
    Tq1_0,
    /// Four two-bit codes per byte, interleaved over 32 bytes.
    Tq2_0,
    /// Four two-bit codes per byte, in order; groups of 64.
    Q2_0,
    /// One byte per code.
    Q8_0,
    /// Two four-bit codes per byte, interleaved over 16 bytes.
    Q4_0,
    /// Like Q4_0, with a minimum.
    Q4_1,
    /// Five-bit codes: four bits as in Q4_0, the fifth bits together.
    Q5_0,
    /// Like Q5_0, with a minimum.
    Q5_1,
    /// Four-bit codes; parts of 32 with a six-bit scale and a six-bit minimum.
    Q4K,
    /// Six-bit codes; parts of 16 with a byte of scale.
    Q6K,
}

/// Properties of a format.
struct Facts {
    name: &'static str,
    /// Numbers of the tensor type, and of a file that consists mostly of it.
    gguf_type: u32,
    file_type: u32,
    len: usize,
    bytes: usize,
    /// Offsets of the scale and of the minimum in a block.
    scale: usize,
    min: Option<usize>,
    /// Lowest and highest code that a block can hold.
    codes: (i8, i8),
    parts: Parts,
}

/// Factors of a block's scale and minimum, per part.
enum Parts {
    /// The block is one part, with no factors.
    One,
    /// Eight parts: twelve bytes, from this offset on, of six-bit scales and minima.
    Sixes(usize),
    /// Sixteen parts: signed bytes, from this offset on.
    Bytes(usize),
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Tq1_0,
        Self::Tq2_0,
        Self::Q2_0,
        Self::Q8_0,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q4K,
        Self::Q6K,
    ];

    /// The formats with an encoder, in the order of [`Format::ALL`].
    pub const ENCODED: [Self; 8] = {
        let mut encoded = [Self::Tq1_0; 8];
        let (mut from, mut to) = (0, 0);
        while from < Self::ALL.len() {
            if Self::ALL[from].can_encode() {
                encoded[to] = Self::ALL[from];
                to += 1;
            }
            from += 1;
        }
        assert!(to == encoded.len());
        encoded
    };

    /// Largest number of values per block of any format.
    pub const MAX_LEN: usize = 256;

    #[inline]
    const fn facts(self) -> Facts {
        #[inline]
        const fn facts(
            (name, gguf_type, file_type): (&'static str, u32, u32),
            (len, bytes): (usize, usize),
            (scale, min): (usize, Option<usize>),
            codes: (i8, i8),
            parts: Parts,
        ) -> Facts {
            Facts {
                name,
                gguf_type,
                file_type,
                len,
                bytes,
                scale,
                min,
                codes,
                parts,
            }
        }
        use Parts::{Bytes, One, Sixes};
        match self {
            Self::Tq1_0 => facts(("tq1_0", 34, 36), (256, 54), (52, None), (-1, 1), One),
            Self::Tq2_0 => facts(("tq2_0", 35, 37), (256, 66), (64, None), (-1, 2), One),
            Self::Q2_0 => facts(("q2_0", 42, 41), (64, 18), (0, None), (-1, 2), One),
            Self::Q8_0 => facts(("q8_0", 8, 7), (32, 34), (0, None), (-128, 127), One),
            Self::Q4_0 => facts(("q4_0", 2, 2), (32, 18), (0, None), (-8, 7), One),
            Self::Q4_1 => facts(("q4_1", 3, 3), (32, 20), (0, Some(2)), (0, 15), One),
            Self::Q5_0 => facts(("q5_0", 6, 8), (32, 22), (0, None), (-16, 15), One),
            Self::Q5_1 => facts(("q5_1", 7, 9), (32, 24), (0, Some(2)), (0, 31), One),
            Self::Q4K => facts(
                ("q4_k", 12, 15),
                (256, 144),
                (0, Some(2)),
                (0, 15),
                Sixes(4),
            ),
            Self::Q6K => facts(
                ("q6_k", 14, 18),
                (256, 210),
                (208, None),
                (-32, 31),
                Bytes(192),
            ),
        }
    }

    /// Returns the number of values per block.
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    #[inline]
    pub const fn len(self) -> usize {
        not_zero(self.facts().len)
    }

    /// Returns the number of bytes per block.
    #[inline]
    pub const fn bytes(self) -> usize {
        not_zero(self.facts().bytes)
    }

    /// Returns the number of parts of a block, which each have their own scale: 8 in Q4_K, 16 in Q6_K, otherwise 1.
    #[inline]
    pub const fn parts(self) -> usize {
        match self.facts().parts {
            Parts::One => 1,
            Parts::Sixes(_) => 8,
            Parts::Bytes(_) => 16,
        }
    }

    /// Returns the number of values per part; those of the block if it is one part.
    ///
    /// ```
    /// use tercet_core::block::Format;
    ///
    /// assert_eq!(Format::Q4K.part_len(), 32);
    /// assert_eq!(Format::Q8_0.part_len(), 32);
    /// ```
    #[inline]
    pub const fn part_len(self) -> usize {
        match self.facts().parts {
            Parts::One => self.len(),
            Parts::Sixes(_) => 32,
            Parts::Bytes(_) => 16,
        }
    }

    /// Returns the number of values and of bytes per block.
    pub const fn layout(self) -> (usize, usize) {
        (self.len(), self.bytes())
    }

    /// Returns the offset of a block's scale, a little-endian f16.
    #[inline]
    pub const fn scale_offset(self) -> usize {
        self.facts().scale
    }

    /// Returns the offset of a block's minimum, a little-endian f16; `None` if a value is `code · scale`. Q4_K
    /// subtracts its minimum: its [`Format::factors`] of minima are negative.
    #[inline]
    pub const fn min_offset(self) -> Option<usize> {
        self.facts().min
    }

    /// Returns the lowest and the highest code that a block can hold.
    ///
    /// ```
    /// use tercet_core::block::Format;
    ///
    /// assert_eq!(Format::Q2_0.codes(), (-1, 2));
    /// assert_eq!(Format::Q4_1.codes(), (0, 15));
    /// ```
    #[inline]
    pub const fn codes(self) -> (i8, i8) {
        self.facts().codes
    }

    /// Returns the stored scale of a block; 0 if there are fewer bytes than a block has.
    #[inline]
    pub fn scale(self, block: &[u8]) -> f16 {
        f16_at(block, self.scale_offset())
    }

    /// Returns the stored minimum of a block; 0 for a format without one, and if there are fewer bytes than a block
    /// has.
    #[inline]
    pub fn min(self, block: &[u8]) -> f16 {
        match self.min_offset() {
            Some(at) => f16_at(block, at),
            None => f16::ZERO,
        }
    }

    /// Returns the factors of the block's scale and minimum for part `part`: (1, 1) if a block is one part.
    ///
    /// A value of the part is `code · (scale · first) − minimum · −second`, with both products exact in f32. (This
    /// form writes what ggml computes for zeros.) Q4_K: 0..=63 and −63..=0. Q6_K, without a minimum: −128..=127
    /// and 0. (0, 0) for a part or a block that does not exist.
    ///
    /// ```
    /// use tercet_core::block::Format;
    ///
    /// let mut block = [0; 210];
    /// block[192 + 5] = 0xFE;
    /// assert_eq!(Format::Q6K.factors(&block, 5), (-2, 0));
    /// assert_eq!(Format::Q8_0.factors(&[0; 34], 0), (1, 1));
    /// ```
    #[inline]
    pub fn factors(self, block: &[u8], part: usize) -> (i8, i8) {
        match self.facts().parts {
            Parts::One => (1, 1),
            Parts::Sixes(at) => match block.get(at..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => sixes(bytes, part),
                None => (0, 0),
            },
            Parts::Bytes(at) => {
                let bytes = block.get(at..).and_then(<[u8]>::first_chunk::<16>);
                let byte = bytes.and_then(|bytes| bytes.get(part));
                (byte.map_or(0, |&byte| byte as i8), 0)
            }
        }
    }

    /// Returns ggml's name of the format, in lower case.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the format with this name, in either case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// Returns the number of the type in a GGUF file.
    pub const fn gguf_type(self) -> u32 {
        self.facts().gguf_type
    }

    /// Returns llama.cpp's number for a file whose tensors mostly have this format, `general.file_type`.
    pub const fn gguf_file_type(self) -> u32 {
        self.facts().file_type
    }

    /// Returns the format with this GGUF type number.
    pub fn from_gguf_type(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.gguf_type() == number)
    }

    /// Returns true for the formats that accept a ternary [`Rule`](crate::quant::Rule).
    pub const fn is_ternary(self) -> bool {
        self.codes().0 == -1
    }

    /// Returns true if the format has an encoder. [`super::encode`] refuses the K-quants, which can only be read.
    #[inline]
    pub const fn can_encode(self) -> bool {
        !matches!(self, Self::Q4K | Self::Q6K)
    }

    /// Returns the number of bytes of `values` values.
    ///
    /// # Errors
    /// [`BlockError::Partial`] unless they are a whole number of blocks; [`BlockError::TooLarge`] if the bytes do not
    /// fit `usize`.
    pub const fn encoded_len(self, values: usize) -> Result<usize, BlockError> {
        let (len, bytes) = self.layout();
        if !values.is_multiple_of(len) {
            return Err(BlockError::Partial {
                len: values,
                block: len,
            });
        }
        match (values / len).checked_mul(bytes) {
            Some(total) => Ok(total),
            None => Err(BlockError::TooLarge { len: values }),
        }
    }
}

/// Returns a size that is not 0. This makes division by it free of panics even if the compiler does not look into
/// [`Facts`].
#[inline]
const fn not_zero(size: usize) -> usize {
    match size {
        0 => 1,
        size => size,
    }
}

/// Returns the f16 at an offset of a block.
#[inline]
fn f16_at(block: &[u8], at: usize) -> f16 {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(f16::ZERO, |&bytes| f16::from_le_bytes(bytes))
}

/// Returns Q4_K's scale and minimum of a part, with the minimum negated.
///
/// Bytes 0 to 3 hold the scales of parts 0 to 3 in their low six bits; bytes 4 to 7 hold the minima. Bytes 8 to 11
/// hold the low four bits of the scales of parts 4 to 7, and above them those of the minima. The highest two bits of
/// bytes 0 to 3 and 4 to 7 are the highest two bits of these.
#[inline]
fn sixes(bytes: &[u8; 12], part: usize) -> (i8, i8) {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let (scale, min) = match part {
        0..4 => (byte(part) & 63, byte(part + 4) & 63),
        4..8 => {
            let low = byte(part + 4);
            (
                low & 15 | byte(part - 4) >> 6 << 4,
                low >> 4 | byte(part) >> 6 << 4,
            )
        }
        _ => (0, 0),
    };
    (scale as i8, -(min as i8))
}
