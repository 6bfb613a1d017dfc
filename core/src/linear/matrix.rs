//! A borrowed and checked matrix of weights.

use half::f16;

use super::{Layout, LinearError, Table, pack};
use crate::block::Format;

/// A checked view of a matrix of weights, which may be in flash, in a file or in an array.
///
/// The bytes may have any address; kernels are fastest if it is a multiple of 4. The scales give the value of a sum
/// of `code · activation`. They are 1 unless given; in GGUF's formats they are inside the blocks.
///
/// ```
/// use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, sums};
///
/// let weights = Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?;
/// let mut out = [0; 2];
/// let mut scratch = [0; Layout::Int8.scratch_len(2, 3)];
/// sums(&Layer::new(weights), I8Sym::new(&[10, 20, 30])?, &mut out, &mut scratch)?;
/// assert_eq!(out, [140, 20]);
/// # Ok::<(), tercet_core::linear::LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Matrix<'a> {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
    scales: Scales<'a>,
    /// Properties of the blocks' scales; other layouts have those of no blocks.
    blocks: Blocks,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) enum Scales<'a> {
    One(f32),
    Rows(Table<'a>),
}

impl Scales<'_> {
    /// Returns the scale of a row; 1 for an index after the last.
    #[inline]
    pub(super) fn of(&self, row: usize) -> f32 {
        match self {
            Self::One(scale) => *scale,
            Self::Rows(table) => table.get_f32(row).unwrap_or(1.0),
        }
    }

    /// Returns the scale of every row, if it is the same for all.
    #[inline]
    pub(super) const fn one(&self) -> Option<f32> {
        match self {
            Self::One(scale) => Some(*scale),
            Self::Rows(_) => None,
        }
    }
}

/// Result of the check of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Blocks {
    /// Bits of the largest possible sum of a row with 8-bit activations.
    bits: u8,
    /// True if all blocks have the same scale.
    alike: bool,
}

impl<'a> Matrix<'a> {
    /// A matrix without rows.
    pub(super) const NONE: Self = Self {
        layout: Layout::Int8,
        rows: 0,
        cols: 0,
        bytes: &[],
        scales: Scales::One(1.0),
        blocks: Blocks {
            bits: 0,
            alike: false,
        },
    };

    /// Borrows a matrix after one pass that checks it. O(rows · cols).
    ///
    /// # Errors
    /// Those of [`Layout::bytes`]; [`LinearError::Length`] unless `bytes` has that length; [`LinearError::CodeRange`]
    /// for bits that are not the code of a weight; for blocks [`LinearError::ScaleNotFinite`] and
    /// [`LinearError::ScaleRange`].
    pub fn new(
        layout: Layout,
        rows: usize,
        cols: usize,
        bytes: &'a [u8],
    ) -> Result<Self, LinearError> {
        super::expect(layout.bytes(rows, cols)?, bytes.len())?;
        let mut blocks = Blocks {
            bits: 0,
            alike: false,
        };
        match layout {
            // Every bit pattern is valid.
            Layout::Int8 | Layout::Int8Pairs | Layout::Int4 | Layout::FiveTrits => {}
            Layout::TernaryLanes => pack::check_ternary_lanes(cols, bytes)?,
            Layout::Block(format) => {
                blocks = check_blocks(format, layout.group_bytes(cols)?, bytes, 127)?;
            }
        }
        Ok(Self {
            layout,
            rows,
            cols,
            bytes,
            scales: Scales::One(1.0),
            blocks,
        })
    }

    /// Checks that the sums of blocks with 16-bit activations stay below 2⁶²; [`Matrix::new`] checks this for 8 bits.
    /// O(1), but O(rows · cols) if it fails.
    ///
    /// Activations are within ±32,512, as from [`crate::quant::activations`]. Sums of other layouts always fit.
    ///
    /// # Errors
    /// [`LinearError::ScaleRange`].
    pub fn check_wide(&self) -> Result<(), LinearError> {
        match self.layout {
            Layout::Block(format) if self.wide_sum_bits() > MOST_BITS => check_blocks(
                format,
                self.layout.group_bytes(self.cols)?,
                self.bytes,
                32_512,
            )
            .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Returns the largest number of bits of the magnitude of a row's sum with 16-bit activations within ±32,512. For
    /// blocks, the sum is in their unit of 2⁻²⁴. If it is more than 53, some sums have no exact f64.
    ///
    /// ```
    /// use tercet_core::linear::{Layout, Matrix};
    ///
    /// // 4 · 128 · 32,512 is less than 2²⁴, but not than 2²³.
    /// assert_eq!(Matrix::new(Layout::Int8, 1, 4, &[0; 4])?.wide_sum_bits(), 24);
    /// # Ok::<(), tercet_core::linear::LinearError>(())
    /// ```
    pub const fn wide_sum_bits(&self) -> u32 {
        // 32,512 is 127 · 2⁸.
        let eight = match self.layout {
            Layout::Block(_) => self.blocks.bits as u32,
            layout => {
                let (lowest, highest) = layout.codes();
                let (lowest, highest) = (lowest.unsigned_abs(), highest.unsigned_abs());
                let code = if lowest > highest { lowest } else { highest };
                let most = self.cols as u64 * (code as u64 * 127);
                u64::BITS - most.leading_zeros()
            }
        };
        eight + 8
    }

    /// Sets one scale for all weights.
    ///
    /// # Errors
    /// [`LinearError::ScaleTwice`] for blocks; [`LinearError::ScaleNotFinite`], as row 0.
    pub const fn with_scale(mut self, scale: f32) -> Result<Self, LinearError> {
        if let Layout::Block(_) = self.layout {
            return Err(LinearError::ScaleTwice);
        }
        if !scale.is_finite() {
            return Err(LinearError::ScaleNotFinite { row: 0 });
        }
        self.scales = Scales::One(scale);
        Ok(self)
    }

    /// Sets one scale per row, as bit patterns of f32.
    ///
    /// # Errors
    /// [`LinearError::ScaleTwice`] for blocks; [`LinearError::Length`] unless there is one per row;
    /// [`LinearError::ScaleNotFinite`].
    pub fn with_row_scales(mut self, scales: Table<'a>) -> Result<Self, LinearError> {
        if let Layout::Block(_) = self.layout {
            return Err(LinearError::ScaleTwice);
        }
        super::expect(self.rows, scales.len())?;
        for row in 0..self.rows {
            if !scales.get_f32(row).is_some_and(f32::is_finite) {
                return Err(LinearError::ScaleNotFinite { row });
            }
        }
        self.scales = Scales::Rows(scales);
        Ok(self)
    }

    /// Returns the memory layout of the weights.
    #[inline]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the number of rows (outputs).
    #[inline]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns (inputs), at least 1.
    #[inline]
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the bytes of the weights.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of words of scratch that a product needs; see [`Layout::scratch_len`].
    pub const fn scratch_len(&self) -> usize {
        self.layout.scratch_len(self.rows, self.cols)
    }

    /// Returns the largest number of words of scratch that a product uses; see [`Layout::fast_scratch_len`].
    pub const fn fast_scratch_len(&self) -> usize {
        self.layout.fast_scratch_len(self.rows, self.cols)
    }

    /// Returns the scale of a row; 1 for an index after the last.
    #[inline]
    pub fn scale(&self, row: usize) -> f32 {
        self.scales.of(row)
    }

    /// Returns all scales.
    #[inline]
    pub(super) const fn scales(&self) -> Scales<'a> {
        self.scales
    }

    /// Returns the f16 scale of every block if all blocks have the same: a ternary tensor with one scale.
    #[inline]
    pub(crate) fn one_block_scale(&self) -> Option<f16> {
        match self.layout {
            Layout::Block(format) if self.blocks.alike => Some(format.scale(self.bytes)),
            _ => None,
        }
    }

    /// Returns at most `rows` rows, from `first` on; `None` unless `first` is a multiple of [`Layout::group_rows`]
    /// and a row's index or the number of rows.
    pub fn part(&self, first: usize, rows: usize) -> Option<Self> {
        let group = self.layout.group_rows();
        if !first.is_multiple_of(group) || first > self.rows {
            return None;
        }
        let rows = rows.min(self.rows - first);
        let group_bytes = self.layout.group_bytes(self.cols).ok()?;
        let start = (first / group).checked_mul(group_bytes)?;
        let len = rows.div_ceil(group).checked_mul(group_bytes)?;
        let bytes = self.bytes.get(start..)?.get(..len)?;
        let scales = match self.scales {
            Scales::One(scale) => Scales::One(scale),
            Scales::Rows(table) => Scales::Rows(table.part(first, rows)),
        };
        Some(Self {
            rows,
            bytes,
            scales,
            ..*self
        })
    }
}

/// Largest number of bits of a sum's magnitude.
const MOST_BITS: u32 = 62;

/// Fails for rows with scales or minima that are not finite, or so large that Σ |d|·2²⁴·max|dot| + |m|·2²⁴·max|Σx|
/// over the parts of their blocks could reach 2⁶² for activations within ±`largest`. Otherwise returns the properties
/// of the blocks.
fn check_blocks(
    format: Format,
    row_bytes: usize,
    bytes: &[u8],
    largest: u64,
) -> Result<Blocks, LinearError> {
    let (lowest, highest) = format.codes();
    let largest_code = lowest.unsigned_abs().max(highest.unsigned_abs());
    let largest_sum = largest * format.part_len() as u64;
    // An f16 times 2²⁴ is an integer below 2⁴⁰.
    let fixed = |f16: f16| (f16.to_f32().abs() * 16_777_216.0) as u64;
    let parts = format.parts();
    let mut largest_bits = 0;
    let first = bytes
        .get(..format.bytes())
        .map(|block| format.scale(block).to_bits());
    let mut alike = first.is_some();
    for (row, bytes) in bytes.chunks_exact(row_bytes.max(1)).enumerate() {
        let (mut scales, mut mins) = (0u64, 0u64);
        for block in bytes.chunks_exact(format.bytes().max(1)) {
            let (scale, min) = (format.scale(block), format.min(block));
            if !scale.is_finite() || !min.is_finite() {
                return Err(LinearError::ScaleNotFinite { row });
            }
            alike &= first == Some(scale.to_bits());
            // At most 2⁷ per part.
            let (mut of_scale, mut of_min) = if parts == 1 { (1, 1) } else { (0, 0) };
            for part in (0..parts).filter(|_| parts > 1) {
                let factors = format.factors(block, part);
                of_scale += u64::from(factors.0.unsigned_abs());
                of_min += u64::from(factors.1.unsigned_abs());
            }
            // At most 2¹² parts (MAX_COLS / 16).
            scales += fixed(scale) * of_scale;
            mins += fixed(min) * of_min;
        }
        // Sums are below 2⁵⁹, largest_code is at most 2⁷, largest_sum is below 2²³: the product may exceed 2⁶⁴.
        let most = u128::from(scales) * u128::from(largest_code) + u128::from(mins);
        let bits = u128::BITS - (most * u128::from(largest_sum)).leading_zeros();
        if bits > MOST_BITS {
            return Err(LinearError::ScaleRange { row });
        }
        largest_bits = largest_bits.max(bits);
    }
    Ok(Blocks {
        bits: largest_bits as u8,
        alike,
    })
}
