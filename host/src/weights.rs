//! A matrix of quantized weights that owns its memory and multiplies vectors.

use tercet_core::linear::{Layer, Layout, LinearError, Matrix, Table, pack};
use tercet_core::quant::QuantError;
use thiserror::Error;

use crate::linear::{ProductError, matmat};
use crate::parallel::Threads;
use crate::{Quantized, Quantizer};

/// The reason that a matrix could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum WeightsError {
    /// Floats that cannot be quantized.
    #[error("weights: {0}")]
    Quantize(#[from] QuantError),
    /// The sizes are not those of a matrix.
    #[error("weights: {0}")]
    Linear(#[from] LinearError),
    /// Codes with zero points. An integer product needs codes that are proportional to the weights.
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
/// A product quantizes each vector to int8 by its largest magnitude, sums exactly, and rounds once. Results have the
/// same bits on every machine and with any number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    rows: usize,
    cols: usize,
    layout: Layout,
    /// The weights as packed by the layout.
    bytes: Vec<u8>,
    /// One scale per row as the bits of an f32.
    scales: Vec<i32>,
}

impl Weights {
    /// Quantizes `rows` x `cols` floats to −1, 0 and +1, with one scale per row and the least squared error. 1.6 bits
    /// per weight.
    ///
    /// # Errors
    /// Those of [`Quantizer::quantize`]; [`LinearError::Length`] unless there are `rows · cols` floats;
    /// [`LinearError::Columns`] for a row without columns or of more than [`MAX_COLS`](tercet_core::linear::MAX_COLS).
    pub fn ternary(floats: &[f32], rows: usize, cols: usize) -> Result<Self, WeightsError> {
        Self::quantized_by(Quantizer::ternary(), floats, rows, cols)
    }

    /// Quantizes `rows` x `cols` floats to int8, with one scale per row. 8 bits per weight.
    ///
    /// # Errors
    /// Those of [`Weights::ternary`].
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

    /// Returns the matrix of a tensor. A tensor quantized per row keeps its rows; any other becomes one row.
    ///
    /// # Errors
    /// [`WeightsError::ZeroPoints`]; [`LinearError::Columns`].
    pub fn from_quantized(quantized: &Quantized) -> Result<Self, WeightsError> {
        if quantized.zero_points().iter().any(|&zero| zero != 0) {
            return Err(WeightsError::ZeroPoints);
        }
        let is_ternary = quantized.codes().iter().all(|code| (-1..=1).contains(code));
        // Every byte is valid in these layouts, so products need not check the bytes.
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

    /// Number of rows, and of values of a product.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, and of values of a vector.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// The layout of the weights in memory.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of weights and scales.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&self.scales[..])
    }

    /// Returns a borrowed view of the matrix for the core's functions. O(rows).
    ///
    /// # Errors
    /// None: a `Weights` is always a valid matrix.
    pub fn layer(&self) -> Result<Layer<'_>, LinearError> {
        let matrix = Matrix::new(self.layout, self.rows, self.cols, &self.bytes)?;
        Ok(Layer::new(
            matrix.with_row_scales(Table::Words(&self.scales))?,
        ))
    }

    /// Multiplies the matrix by one vector. O(rows · cols).
    ///
    /// # Errors
    /// [`LinearError::Length`] unless there are `cols` values; [`QuantError::NotFinite`].
    pub fn matvec(&self, x: &[f32]) -> Result<Vec<f32>, ProductError> {
        check_cols(x.len(), self.cols)?;
        self.matmat(x)
    }

    /// Multiplies the matrix by each of several vectors. `x` has one vector after another; the result has their
    /// products in the same order.
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
