//! A layer: weights and bias, and the three forms of its product.

use super::{I8Sym, LinearError, Matrix, Rescale, Table, expect};
use crate::arch::for_each_sum;

/// Weights and, where there is one, a bias.
///
/// The bias is added inside the exact sum: row r contributes `bias[r] · 2^shift` in the sum's unit. That unit is
/// `scale · x_scale` for plain layouts, so shift 0 serves; for GGUF blocks it is `2⁻²⁴ · x_scale`, where a shift brings
/// the bias into 32 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layer<'a> {
    weights: Matrix<'a>,
    bias: Option<(Table<'a>, u8)>,
}

/// The largest shift of a bias: 2³¹ · 2³⁰ = 2⁶¹ and a sum below 2⁶² stay below 2⁶³.
pub const MAX_BIAS_SHIFT: u8 = 30;

impl<'a> Layer<'a> {
    /// A layer without a bias.
    pub const fn new(weights: Matrix<'a>) -> Self {
        Self {
            weights,
            bias: None,
        }
    }

    /// Adds a bias, one value a row.
    ///
    /// # Errors
    /// [`LinearError::BiasShift`] above [`MAX_BIAS_SHIFT`], [`LinearError::Length`] unless there is one for each row.
    pub const fn with_bias(mut self, bias: Table<'a>, shift: u8) -> Result<Self, LinearError> {
        if shift > MAX_BIAS_SHIFT {
            return Err(LinearError::BiasShift { shift });
        }
        if let Err(error) = expect(self.weights.rows(), bias.len()) {
            return Err(error);
        }
        self.bias = Some((bias, shift));
        Ok(self)
    }

    /// The weights.
    pub const fn weights(&self) -> &Matrix<'a> {
        &self.weights
    }

    /// What the bias adds to a row's sum.
    #[inline]
    pub fn bias(&self, row: usize) -> i64 {
        match &self.bias {
            Some((bias, shift)) => i64::from(bias.get(row).unwrap_or_default()) << (shift & 31),
            None => 0,
        }
    }

    /// A row's sum, bias included, as f32: `fl(fl(f32(sum) · unit · scale) · x_scale)`, with the unit of the layout.
    #[inline]
    pub fn value(&self, row: usize, sum: i64, x_scale: f32) -> f32 {
        // The conversion rounds; the unit is a power of two.
        sum as f32 * self.weights.layout().unit() * self.weights.scale(row) * x_scale
    }

    /// The rows from `first` on; see [`Matrix::part`].
    pub fn part(&self, first: usize, rows: usize) -> Option<Self> {
        let weights = self.weights.part(first, rows)?;
        let bias = self.bias;
        let bias = bias.map(|(bias, shift)| (bias.part(first, weights.rows()), shift));
        Some(Self { weights, bias })
    }

    /// What every engine checks first: an activation a column, an output a row, scratch.
    ///
    /// # Errors
    /// [`LinearError::Length`], [`LinearError::Scratch`].
    pub const fn check(
        &self,
        x: I8Sym<'_>,
        outputs: usize,
        scratch: usize,
    ) -> Result<(), LinearError> {
        if let Err(error) = expect(self.weights.cols(), x.len()) {
            return Err(error);
        }
        if let Err(error) = expect(self.weights.rows(), outputs) {
            return Err(error);
        }
        let (needed, found) = (self.weights.scratch_len(), scratch);
        if found < needed {
            return Err(LinearError::Scratch { needed, found });
        }
        Ok(())
    }
}

/// The exact sums of a layer, bias included, one a row: Σ w·x, or Σ d·2²⁴·(Σ w·x) over the blocks of GGUF's formats.
///
/// O(rows · cols); scratch as [`Matrix::scratch_len`] says. |sum| < 2⁶³ always.
///
/// # Errors
/// Those of [`Layer::check`].
pub fn sums(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    out: &mut [i64],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    layer.check(x, out.len(), scratch.len())?;
    for_each_sum(&layer.weights, x, scratch, |row, sum| {
        if let Some(out) = out.get_mut(row) {
            *out = sum + layer.bias(row);
        }
    });
    Ok(())
}

/// The product in f32: `fl(fl(f32(sum) · scale) · x_scale)`, the sum exact, bias included, and rounded once.
///
/// # Errors
/// Those of [`Layer::check`].
pub fn matvec(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    x_scale: f32,
    out: &mut [f32],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    layer.check(x, out.len(), scratch.len())?;
    for_each_sum(&layer.weights, x, scratch, |row, sum| {
        if let Some(out) = out.get_mut(row) {
            *out = layer.value(row, sum + layer.bias(row), x_scale);
        }
    });
    Ok(())
}

/// The product in int8, ready for the next layer: [`Rescale::apply`] of each sum, bias included.
///
/// # Errors
/// Those of [`Layer::check`] and [`Rescale::check`].
pub fn dense(
    layer: &Layer<'_>,
    rescale: &Rescale<'_>,
    x: I8Sym<'_>,
    out: &mut [i8],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    layer.check(x, out.len(), scratch.len())?;
    rescale.check(out.len())?;
    for_each_sum(&layer.weights, x, scratch, |row, sum| {
        if let Some(out) = out.get_mut(row) {
            *out = rescale.apply(row, sum + layer.bias(row));
        }
    });
    Ok(())
}

/// The index of the largest value; the lowest of equals, 0 for none. NaN is never larger.
pub fn argmax<T: PartialOrd + Copy>(values: &[T]) -> usize {
    let mut best = 0;
    let mut largest: Option<T> = None;
    for (index, &value) in values.iter().enumerate() {
        if largest.is_none_or(|largest| value > largest) {
            largest = Some(value);
            best = index;
        }
    }
    best
}
