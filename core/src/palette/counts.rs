//! The weights of the int8 grid's codes, from which a palette is chosen.

use super::encode::expect;
use super::{Optimum, PaletteError, optimal_1d};
use crate::number::Element;
use crate::quant::{Grid, QuantError};

/// Number of values that are coded before they are counted or packed; a multiple of eight.
pub(super) const RUN: usize = 64;

/// Every code, in ascending order.
static CODES: [i8; 256] = {
    let mut codes = [0; 256];
    let mut place = 0;
    while place < codes.len() {
        codes[place] = (place as u8 ^ 0x80) as i8;
        place += 1;
    }
    codes
};

/// The weight of each int8 code in a group. Exact and mergeable: split and order have no influence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Weight of code c at c + 128.
    weights: [u64; 256],
}

impl Counts {
    /// The counts of no values.
    pub const EMPTY: Self = Self { weights: [0; 256] };

    /// Returns given counts, that of code c at c + 128. For engines that count by themselves.
    pub const fn of(weights: [u64; 256]) -> Self {
        Self { weights }
    }

    /// Adds the codes that `grid` gives to finite values, each with its importance, or with 1 if `importances` is
    /// empty.
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless there is one importance per value or none at all.
    pub fn add<T: Element>(
        &mut self,
        values: &[T],
        importances: &[u32],
        grid: &Grid,
    ) -> Result<(), PaletteError> {
        if !importances.is_empty() {
            expect(values.len(), importances.len())?;
        }
        let mut buffer = [0; RUN];
        let mut importances = importances.chunks(RUN);
        for values in values.chunks(RUN) {
            let codes = buffer.get_mut(..values.len()).unwrap_or_default();
            coded(values, grid, codes)?;
            self.add_codes(codes, importances.next().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Like [`Counts::add`], for values that are already coded.
    #[inline]
    pub fn add_codes(&mut self, codes: &[i8], importances: &[u32]) -> Result<(), PaletteError> {
        if importances.is_empty() {
            for &code in codes {
                let slot = &mut self.weights[place(code)];
                *slot = slot.saturating_add(1);
            }
            return Ok(());
        }
        expect(codes.len(), importances.len())?;
        for (&code, &importance) in codes.iter().zip(importances) {
            let slot = &mut self.weights[place(code)];
            *slot = slot.saturating_add(u64::from(importance));
        }
        Ok(())
    }

    /// Adds the counts of other values.
    pub fn merge(&mut self, other: &Self) {
        for (weight, more) in self.weights.iter_mut().zip(&other.weights) {
            *weight = weight.saturating_add(*more);
        }
    }

    /// Returns true if no value has any weight.
    pub fn is_empty(&self) -> bool {
        self.weights.iter().all(|&weight| weight == 0)
    }

    /// Fills a codebook of any length with the entries of least weighted squared error. Works like [`optimal_1d`],
    /// with the same errors and scratch.
    pub fn choose(
        &self,
        codebook: &mut [i8],
        scratch: &mut [u64],
    ) -> Result<Optimum, PaletteError> {
        optimal_1d(&CODES, &self.weights, codebook, scratch)
    }
}

/// Returns the place of a code among 256: c + 128.
#[inline(always)]
pub(super) fn place(code: i8) -> usize {
    usize::from(code as u8 ^ 0x80)
}

/// Returns the codes of finite values, as many as there are values.
#[inline]
pub(super) fn coded<T: Element>(
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
) -> Result<(), PaletteError> {
    match grid.apply(values, codes) {
        Ok(_) => Ok(()),
        Err(QuantError::Length { expected, found }) => {
            Err(PaletteError::Length { expected, found })
        }
        // The grid's scale is not finite, so neither are the values.
        Err(_) => Err(PaletteError::ScaleNotFinite { group: 0 }),
    }
}
