//! A matrix of weights in memory of its own, to multiply vectors by.

use tercet_core::linear::{Layer, Layout, LinearError, Matrix, Table, pack};
use tercet_core::quant::QuantError;
use thiserror::Error;

use crate::linear::{ProductError, matmat};
use crate::parallel::Threads;
use crate::{Quantized, Quantizer};

/// Why there is no matrix.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum WeightsError {
    /// Floats that cannot be quantized.
    #[error("weights: {0}")]
    Quantize(#[from] QuantError),
    /// Sizes that make no matrix.
    #[error("weights: {0}")]
    Linear(#[from] LinearError),
    /// Codes with zero points: an integer product takes codes that are proportional to the weights.
    #[error(
        "weights: codes with zero points make no matrix; quantize them without, as Quantizer::int8 does"
    )]
    ZeroPoints,
}

/// A quantized matrix that multiplies vectors of floats in exact integers.
///
/// ```
/// use tercet_host::Weights;
///
/// // Two rows of four weights.
/// let weights = Weights::ternary(&[0.9, -0.1, 0.4, -1.1, 0.2, 0.0, -0.3, 0.25], 2, 4)?;
/// assert_eq!(weights.matvec(&[127.0, 1.0, 2.0, 27.0])?, [100.0, 38.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A product quantizes each vector to int8 by its largest magnitude, sums exactly, and rounds once: every machine and any
/// number of threads gives the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    rows: usize,
    cols: usize,
    layout: Layout,
    /// The weights as the layout packs them.
    bytes: Vec<u8>,
    /// One scale per row as the bits of an f32.
    scales: Vec<i32>,
}

impl Weights {
    /// `rows` x `cols` weights of −1, 0 and +1 with one scale per row, the ones of least squared error; 1.6 bits per weight.
    ///
    /// # Errors
    /// Those of [`Quantizer::quantize`]; [`LinearError::Length`] unless there are `rows · cols` floats;
    /// [`LinearError::Columns`] for a row without columns or of more than
    /// [`MAX_COLS`](tercet_core::linear::MAX_COLS).
    pub fn ternary(floats: &[f32], rows: usize, cols: usize) -> Result<Self, WeightsError> {
        Self::quantized_by(Quantizer::ternary(), floats, rows, cols)
    }

    /// `rows` x `cols` int8 weights with one scale per row; 8 bits per weight.
    ///
    /// # Errors
    /// As [`Weights::ternary`].
    pub fn int8(floats: &[f32], rows: usize, cols: usize) -> Result<Self, WeightsError> {
        Self::quantized_by(Quantizer::int8(), floats, rows, cols)
    }

    fn quantized_by(
        quantizer: Quantizer,
        floats: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Self, WeightsError> {
        Layout::Int8.bytes(rows, cols)?;
        check(floats.len(), rows, cols)?;
        Self::from_quantized(&quantizer.per_row(cols).quantize(floats)?)
    }

    /// The matrix of a tensor that was quantized per row; one that was quantized whole becomes one row.
    ///
    /// # Errors
    /// [`WeightsError::ZeroPoints`]; [`LinearError::Columns`].
    pub fn from_quantized(quantized: &Quantized) -> Result<Self, WeightsError> {
        if quantized.zero_points().iter().any(|&zero| zero != 0) {
            return Err(WeightsError::ZeroPoints);
        }
        let is_ternary = quantized.codes().iter().all(|code| (-1..=1).contains(code));
        // Layouts of which every byte stands for weights, so that no product needs to look for others.
        let layout = match is_ternary {
            true => Layout::FiveTrits,
            false => Layout::Int8,
        };
        let groups = quantized.groups();
        let (rows, cols) = (groups.count, groups.len);
        let mut bytes = vec![0; layout.bytes(rows, cols)?];
        pack::pack(layout, rows, cols, quantized.codes(), &mut bytes)?;
        let bits = |scale: &f32| scale.to_bits().cast_signed();
        Ok(Self {
            rows,
            cols,
            layout,
            bytes,
            scales: quantized.scales().iter().map(bits).collect(),
        })
    }

    /// Number of rows: values of a product.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: values of a vector.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// How the weights lie in memory.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of weights and scales.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&self.scales[..])
    }

    /// The same matrix as the core takes it, borrowed. O(rows).
    ///
    /// # Errors
    /// None for a matrix that was made here.
    pub fn layer(&self) -> Result<Layer<'_>, LinearError> {
        let matrix = Matrix::new(self.layout, self.rows, self.cols, &self.bytes)?;
        Ok(Layer::new(
            matrix.with_row_scales(Table::Words(&self.scales))?,
        ))
    }

    /// The matrix times one vector. O(rows · cols).
    ///
    /// # Errors
    /// [`LinearError::Length`] unless there are `cols` values; [`QuantError::NotFinite`].
    pub fn matvec(&self, x: &[f32]) -> Result<Vec<f32>, ProductError> {
        check_cols(x.len(), self.cols)?;
        self.matmat(x)
    }

    /// The matrix times each of several vectors, one after another in `x`; the products follow one another likewise.
    ///
    /// # Errors
    /// [`LinearError::Length`] unless `x` holds whole vectors; [`QuantError::NotFinite`].
    pub fn matmat(&self, x: &[f32]) -> Result<Vec<f32>, ProductError> {
        let count = x.len() / self.cols.max(1);
        check_cols(x.len(), count * self.cols)?;
        let mut out = vec![0.0; count * self.rows];
        matmat(&mut Threads::default(), &self.layer()?, x, &mut out)?;
        Ok(out)
    }
}

fn check(found: usize, rows: usize, cols: usize) -> Result<(), LinearError> {
    let expected = rows.checked_mul(cols).ok_or(LinearError::TooLarge)?;
    check_cols(found, expected)
}

const fn check_cols(found: usize, expected: usize) -> Result<(), LinearError> {
    match found == expected {
        true => Ok(()),
        false => Err(LinearError::Length { expected, found }),
    }
}
