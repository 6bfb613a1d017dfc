//! A layer: weights and an optional bias.

use super::table::Values;
use super::{I8Sym, LinearError, Matrix, Table, expect};

/// Weights and an optional bias.
///
/// The bias is added inside the exact sum: row r contributes `bias[r] · 2^shift` in the sum's unit. For plain layouts
/// this unit is `scale · x_scale`, so a shift of 0 is enough. For GGUF blocks it is `2⁻²⁴ · x_scale`, and a shift
/// lets the bias fit 32 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layer<'a> {
    weights: Matrix<'a>,
    bias: Option<(Table<'a>, u8)>,
}

/// Largest shift of a bias: 2³¹ · 2³⁰ = 2⁶¹ plus a sum below 2⁶² stays below 2⁶³.
pub const MAX_BIAS_SHIFT: u8 = 30;

impl<'a> Layer<'a> {
    /// A layer without rows.
    pub(crate) const NONE: &'static Layer<'static> = &Layer::new(Matrix::NONE);

    /// Creates a layer without a bias.
    pub const fn new(weights: Matrix<'a>) -> Self {
        Self {
            weights,
            bias: None,
        }
    }

    /// Adds a bias, one value per row.
    ///
    /// # Errors
    /// [`LinearError::BiasShift`] above [`MAX_BIAS_SHIFT`]; [`LinearError::Length`] unless there is one value per
    /// row.
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

    /// Returns the weights.
    #[inline]
    pub const fn weights(&self) -> &Matrix<'a> {
        &self.weights
    }

    /// Returns the number that the bias adds to a row's sum.
    pub fn bias(&self, row: usize) -> i64 {
        self.biases(row).next()
    }

    /// Returns true if the layer has a bias.
    #[inline]
    pub const fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    /// Returns the numbers that the bias adds, from a row on.
    pub(super) fn biases(&self, first: usize) -> Biases<'a> {
        let values = self.bias.as_ref().map(|(values, _)| values);
        Biases {
            values: Values::new(values, first),
            shift: self.bias.map_or(0, |(_, shift)| shift),
        }
    }

    /// Returns a row's sum, bias included, as f32: `fl(fl(f32(sum) · unit · scale) · x_scale)`, with the layout's
    /// unit.
    #[inline]
    pub fn value(&self, row: usize, sum: i64, x_scale: f32) -> f32 {
        self.value_of_rounded(row, sum as f32, x_scale)
    }

    /// Returns [`Layer::value`] for a sum, bias included, that is already rounded to f32: `fl(fl(rounded · unit ·
    /// scale) · x_scale)`. The unit is a power of two.
    #[inline]
    pub fn value_of_rounded(&self, row: usize, rounded: f32, x_scale: f32) -> f32 {
        rounded * self.weights.layout().unit() * self.weights.scale(row) * x_scale
    }

    /// Returns at most `rows` rows, from `first` on; see [`Matrix::part`].
    pub fn part(&self, first: usize, rows: usize) -> Option<Self> {
        let weights = self.weights.part(first, rows)?;
        let bias = self.bias;
        let bias = bias.map(|(bias, shift)| (bias.part(first, weights.rows()), shift));
        Some(Self { weights, bias })
    }

    /// Checks that there is one activation per column and one output per row. Every engine does this first.
    ///
    /// # Errors
    /// [`LinearError::Length`].
    pub const fn check(&self, x: I8Sym<'_>, outputs: usize) -> Result<(), LinearError> {
        if let Err(error) = expect(self.weights.cols(), x.len()) {
            return Err(error);
        }
        expect(self.weights.rows(), outputs)
    }

    /// Checks a product with many rows of activations: whole rows, and one output per row of activations and row of
    /// weights. Every engine does this first. Returns the number of rows in `x`.
    ///
    /// # Errors
    /// [`LinearError::Length`]; [`LinearError::TooLarge`] if the number of outputs does not fit `usize`.
    pub const fn check_many(&self, x: I8Sym<'_>, outputs: usize) -> Result<usize, LinearError> {
        let cols = self.weights.cols();
        // A matrix has at least one column.
        let count = x.len().div_ceil(if cols == 0 { 1 } else { cols });
        let (Some(values), Some(expected)) = (
            count.checked_mul(cols),
            count.checked_mul(self.weights.rows()),
        ) else {
            return Err(LinearError::TooLarge);
        };
        if let Err(error) = expect(values, x.len()) {
            return Err(error);
        }
        if let Err(error) = expect(expected, outputs) {
            return Err(error);
        }
        Ok(count)
    }
}

/// The numbers that a bias adds, row by row.
pub(super) struct Biases<'a> {
    values: Values<'a>,
    shift: u8,
}

impl<'a> Biases<'a> {
    /// Returns true if there is no table: all are 0.
    #[inline]
    pub(super) const fn are_none(&self) -> bool {
        matches!(self.values, Values::None)
    }

    /// Returns their shift.
    pub(super) const fn shift(&self) -> u8 {
        self.shift
    }

    /// Returns the values of the next rows, at most `rows`, without the shift, if they are words.
    #[inline]
    pub(super) fn words(&mut self, rows: usize) -> Option<&'a [i32]> {
        match &mut self.values {
            Values::Words(words) => {
                let (next, rest) = words.split_at_checked(rows).unwrap_or((words, &[]));
                *words = rest;
                Some(next)
            }
            _ => None,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> i64 {
        shifted(self.values.next(), self.shift)
    }
}

/// Returns `value · 2^shift` for a shift of at most [`MAX_BIAS_SHIFT`]. Two 32-bit shifts, since a 64-bit shift is
/// expensive on 32-bit machines.
#[inline]
pub(super) const fn shifted(value: i32, shift: u8) -> i64 {
    let shift = (shift & 31) as u32;
    let upper = (value >> 1) >> (31 - shift);
    (upper as i64) << 32 | (value as u32).wrapping_shl(shift) as i64
}
