//! Layers on several devices: each has some rows of weights, and all rows of activations.

use tercet_core::linear::{I8Sym, LinearError, Matrix};

use super::engine::{BareSums, GROUP};
use crate::engine::{CudaError, Cudas};

impl BareSums for Cudas {
    fn bare_sums(
        &mut self,
        matrix: &Matrix<'_>,
        x: I8Sym<'_>,
    ) -> Result<Option<Vec<i64>>, CudaError> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let shares = self.shares(rows, GROUP, cols);
        let parts = self.each(shares.clone(), |cuda, range| {
            let part = matrix.part(range.start, range.len());
            cuda.bare_sums(&part.ok_or(LinearError::TooLarge)?, x)
        })?;
        let mut all = vec![0; rows * (x.len() / cols)];
        for (range, part) in shares.into_iter().zip(parts) {
            let Some(part) = part else { return Ok(None) };
            let rows_of_part = part.chunks_exact(range.len().max(1));
            for (sums, out) in rows_of_part.zip(all.chunks_mut(rows.max(1))) {
                out[range.clone()].copy_from_slice(sums);
            }
        }
        Ok(Some(all))
    }
}
