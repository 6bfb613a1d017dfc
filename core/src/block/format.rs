//! The block formats by name, number and size.

use half::f16;

use super::BlockError;

/// A block format of GGUF files: a fixed number of values in a fixed number of bytes.
///
/// | format | values | bytes | bits a value | codes | scale |
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
/// A value is `code · scale`, or `code · scale + minimum` where a block has a minimum; both are f16. The blocks of K-quants are made
/// of **parts** ([`Format::parts`]) with small integers of their own, by which the block's scale and minimum are multiplied
/// ([`Format::factors`]); they are decoded and multiplied, not encoded ([`Format::can_encode`]). Forks of llama.cpp reuse type numbers
/// for blocks of other sizes: compare a tensor's byte size with [`Format::encoded_len`] before decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Format {
    /// Five ternary digits a byte.
    Tq1_0,
    /// Four two-bit codes a byte, interleaved over 32 bytes.
    Tq2_0,
    /// Four two-bit codes a byte, in order; groups of 64.
    Q2_0,
    /// Bytes.
    Q8_0,
    /// Two four-bit codes a byte, interleaved over 16 bytes.
    Q4_0,
    /// As Q4_0, with a minimum.
    Q4_1,
    /// Five bits: four as in Q4_0, the fifths side by side.
    Q5_0,
    /// As Q5_0, with a minimum.
    Q5_1,
    /// Four bits; parts of 32 with six bits of scale and six of minimum.
    Q4K,
    /// Six bits; parts of 16 with a byte of scale.
    Q6K,
}

/// What is known of a format.
struct Facts {
    name: &'static str,
    /// The numbers of the tensor type, and of a file that is mostly of it.
    gguf_type: u32,
    file_type: u32,
    len: usize,
    bytes: usize,
    /// Where in a block the scale begins, and the minimum.
    scale: usize,
    min: Option<usize>,
    /// The lowest and the highest code that a block can hold.
    codes: (i8, i8),
    parts: Parts,
}

/// What the parts of a block multiply its scale and its minimum by.
enum Parts {
    /// The block is one part, and takes both as they are.
    One,
    /// Eight parts: twelve bytes, from this one on, of six-bit scales and minima.
    Sixes(usize),
    /// Sixteen parts: signed bytes, from this one on.
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

    /// Those that values can be encoded in, in the order of [`Format::ALL`].
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

    /// The longest block of any format, in values.
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

    /// Values in a block.
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    #[inline]
    pub const fn len(self) -> usize {
        not_zero(self.facts().len)
    }

    /// Bytes of a block.
    #[inline]
    pub const fn bytes(self) -> usize {
        not_zero(self.facts().bytes)
    }

    /// Runs of values in a block that have a scale of their own: 1, but 8 in Q4_K and 16 in Q6_K.
    #[inline]
    pub const fn parts(self) -> usize {
        match self.facts().parts {
            Parts::One => 1,
            Parts::Sixes(_) => 8,
            Parts::Bytes(_) => 16,
        }
    }

    /// Values in a part; those of a block where it is one.
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

    /// Values in a block, and its bytes.
    pub const fn layout(self) -> (usize, usize) {
        (self.len(), self.bytes())
    }

    /// The first byte of a block's scale, an f16, little-endian.
    #[inline]
    pub const fn scale_offset(self) -> usize {
        self.facts().scale
    }

    /// The first byte of a block's minimum, an f16, little-endian; `None` where a value is `code · scale`. Q4_K subtracts what lies
    /// there: its [`Format::factors`] of minima are negative.
    #[inline]
    pub const fn min_offset(self) -> Option<usize> {
        self.facts().min
    }

    /// The lowest and the highest code that a block can hold.
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

    /// The scale of a block, as it is stored; 0 for fewer bytes than a block has.
    #[inline]
    pub fn scale(self, block: &[u8]) -> f16 {
        f16_at(block, self.scale_offset())
    }

    /// The minimum of a block, as it is stored; 0 for a format that has none, and for fewer bytes than a block has.
    #[inline]
    pub fn min(self, block: &[u8]) -> f16 {
        match self.min_offset() {
            Some(at) => f16_at(block, at),
            None => f16::ZERO,
        }
    }

    /// What part `part` of a block multiplies the block's scale by, and its minimum: (1, 1) where a block is one part.
    ///
    /// A value of the part is `code · (scale · first) − minimum · −second`, both products exact in f32 (and so is written what ggml
    /// makes of zeros). Q4_K: 0..=63 and −63..=0; Q6_K, without a minimum: −128..=127 and 0. (0, 0) for a part or a block that is not
    /// there.
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

    /// The name as ggml writes it, in lower case.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The format of a name, in either case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// The number of the type in a GGUF file.
    pub const fn gguf_type(self) -> u32 {
        self.facts().gguf_type
    }

    /// llama.cpp's number of a file whose tensors are mostly of this format, `general.file_type`.
    pub const fn gguf_file_type(self) -> u32 {
        self.facts().file_type
    }

    /// The format of a GGUF type number.
    pub fn from_gguf_type(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.gguf_type() == number)
    }

    /// True for the formats that take a ternary [`Rule`](crate::quant::Rule).
    pub const fn is_ternary(self) -> bool {
        self.codes().0 == -1
    }

    /// Whether values can be encoded in the format; [`super::encode`] refuses the K-quants, which are read only.
    #[inline]
    pub const fn can_encode(self) -> bool {
        !matches!(self, Self::Q4K | Self::Q6K)
    }

    /// Bytes of `values` values.
    ///
    /// # Errors
    /// [`BlockError::Partial`] when they are no whole number of blocks, [`BlockError::TooLarge`] when the
    /// bytes do not fit `usize`.
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

/// A size, which is not 0: said so that no division by it could panic where the compiler does not look into [`Facts`].
#[inline]
const fn not_zero(size: usize) -> usize {
    match size {
        0 => 1,
        size => size,
    }
}

/// The f16 at a byte of a block.
#[inline]
fn f16_at(block: &[u8], at: usize) -> f16 {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(f16::ZERO, |&bytes| f16::from_le_bytes(bytes))
}

/// Q4_K's scale and minimum of a part, the minimum less than 0.
///
/// Bytes 0 to 3 hold the scales of parts 0 to 3 in their low six bits, bytes 4 to 7 the minima; bytes 8 to 11 the low four bits of the
/// scales of parts 4 to 7, and above them those of the minima. The highest two bits of these are those of bytes 0 to 3, and 4 to 7.
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
