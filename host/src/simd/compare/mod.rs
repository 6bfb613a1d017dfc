//! Comparing a restored tensor with its original: the loop of every set.
//!
//! The sums have one order, the 64 lanes of [`tercet_core::number::lanes`]: a vector holds neighbouring lanes, so a set's width does
//! not show. Some lanes of all four sums stay in registers while a few rows pass, then the next lanes.

mod push;

use tercet_core::number::lanes::LANES;
use tercet_core::quant::RowSums;

use super::stores::{Ahead, LINE};

/// A row of values, one a lane.
pub(in crate::simd) type Row = [f32; LANES];

/// Adds the terms of as many rows to the sums, and gives the largest |original − restored|, of finite values.
pub(in crate::simd) type Rows = unsafe fn(&[Row], &[Row], &mut RowSums) -> f64;

/// Vectors of f64 lanes.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; pointers must be valid for [`Lanes::WIDTH`]
/// values.
pub(in crate::simd) trait Lanes {
    /// [`Lanes::WIDTH`] numbers.
    type Vector: Copy;
    /// Lanes of a vector: a divisor of 8.
    const WIDTH: usize;

    /// Widens as many values.
    unsafe fn widen(at: *const f32) -> Self::Vector;
    /// Reads numbers.
    unsafe fn load(at: *const f64) -> Self::Vector;
    /// Writes numbers.
    unsafe fn store(x: Self::Vector, at: *mut f64);
    /// Zeros.
    unsafe fn zeros() -> Self::Vector;
    /// Sums of lanes.
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Differences of lanes.
    unsafe fn subtract(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Products of lanes.
    unsafe fn multiply(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger of each number of `most`, none negative, and the magnitude of one of `x`; any of them where that is a NaN.
    unsafe fn larger(most: Self::Vector, x: Self::Vector) -> Self::Vector;
}

/// Vectors whose lanes pass the rows together. Twice the four sums and the largest errors fit the 16 registers of AVX2.
const VECTORS: usize = 2;

/// A set's [`Rows`].
///
/// # Safety
/// The processor runs the set; there are as many rows in both.
#[inline(always)]
pub(in crate::simd) unsafe fn rows<S: Lanes>(a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let lanes = [
        sums.error.as_mut_ptr(),
        sums.original.as_mut_ptr(),
        sums.restored.as_mut_ptr(),
        sums.product.as_mut_ptr(),
    ];
    // SAFETY: the set runs here; `VECTORS` vectors from each `first` on lie within the 64 lanes of a row and of a sum.
    unsafe {
        let mut most = [S::zeros(); VECTORS];
        for first in (0..LANES).step_by(VECTORS * S::WIDTH) {
            let mut sum = [[S::zeros(); VECTORS]; 4];
            for (sum, lanes) in sum.iter_mut().zip(lanes) {
                for (at, sum) in sum.iter_mut().enumerate() {
                    *sum = S::load(lanes.add(first + at * S::WIDTH));
                }
            }
            for (a, b) in a.iter().zip(b) {
                if first % (LINE / size_of::<f32>()) == 0 {
                    Ahead::ROWS.ask(a.as_ptr().add(first));
                    Ahead::ROWS.ask(b.as_ptr().add(first));
                }
                for at in 0..VECTORS {
                    let x = S::widen(a.as_ptr().add(first + at * S::WIDTH));
                    let y = S::widen(b.as_ptr().add(first + at * S::WIDTH));
                    let error = S::subtract(x, y);
                    sum[0][at] = S::add(sum[0][at], S::multiply(error, error));
                    sum[1][at] = S::add(sum[1][at], S::multiply(x, x));
                    sum[2][at] = S::add(sum[2][at], S::multiply(y, y));
                    sum[3][at] = S::add(sum[3][at], S::multiply(x, y));
                    most[at] = S::larger(most[at], error);
                }
            }
            for (sum, lanes) in sum.iter().zip(lanes) {
                for (at, sum) in sum.iter().enumerate() {
                    S::store(*sum, lanes.add(first + at * S::WIDTH));
                }
            }
        }
        let mut largest = [0.0; VECTORS * 8];
        for (most, largest) in most.into_iter().zip(largest.as_chunks_mut::<8>().0) {
            S::store(most, largest.as_mut_ptr());
        }
        largest.into_iter().fold(0.0, f64::max)
    }
}
