//! Second moments of a matrix from one factor per row and one per column: Shazeer and Stern, *Adafactor: Adaptive
//! Learning Rates with Sublinear Memory Cost*, 2018.

use super::optimizer::{AdamW, Update, gradient};
use crate::number::lanes::{Lanes, product};

/// Number of columns whose factors [`AdamW::column_factors`] computes together.
pub const FACTORED_COLUMNS: usize = 64;

impl AdamW {
    /// Updates the factor of a row from its sums of gradients: r = fl(fl(β₂ · r) + fl((1 − β₂) · a)), with the mean
    /// square a = f32(Σ g² / n). g is limited as in [`AdamW::update`]; its squares are exact in f64, and added in the
    /// order of [`crate::number::lanes`]. O(n).
    pub fn row_factor(&self, update: &Update, (sums, unit): (&[i64], f32), factor: &mut f32) {
        let mut lanes = Lanes::<f64>::new();
        let mut squares = [0.0; 64];
        for sums in sums.chunks(64) {
            for (square, &sum) in squares.iter_mut().zip(sums) {
                *square = limited_square(update, sum, unit);
            }
            lanes.terms(squares.get(..sums.len()).unwrap_or_default());
        }
        self.blend(lanes.total() / sums.len().max(1) as f64, factor);
    }

    /// Updates the factors of columns from `first` on, at most [`FACTORED_COLUMNS`] of them, from the sums of
    /// gradients of the whole matrix with `columns` columns: like [`AdamW::row_factor`], but squares are added in the
    /// order of the rows. O(rows).
    pub fn column_factors(
        &self,
        update: &Update,
        (sums, unit): (&[i64], f32),
        (columns, first): (usize, usize),
        factors: &mut [f32],
    ) {
        let mut squares = [0.0; FACTORED_COLUMNS];
        let rows = sums.chunks_exact(columns.max(1));
        let count = rows.len().max(1) as f64;
        for row in rows {
            let sums = row.get(first..).unwrap_or_default();
            for (square, &sum) in squares.iter_mut().zip(sums).take(factors.len()) {
                *square += limited_square(update, sum, unit);
            }
        }
        for (factor, square) in factors.iter_mut().zip(squares) {
            self.blend(square / count, factor);
        }
    }

    #[inline(always)]
    fn blend(&self, mean: f64, factor: &mut f32) {
        *factor = self.beta2 * *factor + (1.0 - self.beta2) * mean as f32;
    }
}

/// Returns the mean of a matrix's factors of rows: added in f64 in the order of [`crate::number::lanes`], divided by
/// their number, and rounded to f32. O(rows).
pub fn factor_mean(rows: &[f32]) -> f32 {
    let mut lanes = Lanes::<f64>::new();
    let mut terms = [0.0; 64];
    for rows in rows.chunks(64) {
        for (term, &row) in terms.iter_mut().zip(rows) {
            *term = f64::from(row);
        }
        lanes.terms(terms.get(..rows.len()).unwrap_or_default());
    }
    (lanes.total() / rows.len().max(1) as f64) as f32
}

/// Computes second moments of a row, or of a part of one: v = fl(fl(row / mean) · column), with its factor, the mean of
/// those of all rows ([`factor_mean`]), and the factors of the columns. 0 for a mean of 0. O(n).
///
/// ```
/// use tercet_core::train::{factor_mean, factored};
///
/// let rows = [1.0, 3.0];
/// let mut moments = [0.0; 2];
/// factored(rows[1], factor_mean(&rows), &[2.0, 4.0], &mut moments);
/// assert_eq!(moments, [3.0, 6.0]);
/// ```
#[inline]
pub fn factored(row: f32, mean: f32, columns: &[f32], moments: &mut [f32]) {
    let share = if mean > 0.0 { row / mean } else { 0.0 };
    for (moment, &column) in moments.iter_mut().zip(columns) {
        *moment = share * column;
    }
}

#[inline(always)]
fn limited_square(update: &Update, sum: i64, unit: f32) -> f64 {
    let g = gradient(sum, unit) * update.clip;
    product(g, g)
}
