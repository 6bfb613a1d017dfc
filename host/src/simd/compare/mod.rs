//! Compares a restored tensor with its original: the loop of every set.
//!
//! The sums have one order, the 64 lanes of [`tercet_core::number::lanes`]: a vector holds neighbouring lanes, so the
//! result does not depend on the width of a set. Some lanes of all four sums stay in registers while a few rows pass,
//! then the next lanes.

mod push;

use tercet_core::number::lanes::LANES;
use tercet_core::quant::RowSums;

use super::stores::{Ahead, LINE};
use super::vectors::Doubles;

/// A row of values, one per lane.
pub(in crate::simd) type Row = [f32; LANES];

/// Adds the terms of as many rows to the sums, and returns the largest |original − restored|, for finite values.
pub(in crate::simd) type Rows = unsafe fn(&[Row], &[Row], &mut RowSums) -> f64;

/// Vectors whose lanes process the rows together. Twice the four sums and the largest errors fit the 16 registers of
/// AVX2.
const VECTORS: usize = 2;

/// The [`Rows`] of a set. Both have the same number of rows.
#[inline(always)]
pub(in crate::simd) fn rows<S: Doubles>(set: S, a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let width = set.lanes() / 2;
    let lanes = [
        sums.error.as_mut_ptr(),
        sums.original.as_mut_ptr(),
        sums.restored.as_mut_ptr(),
        sums.product.as_mut_ptr(),
    ];
    let mut most = [set.splat_f64(0.0); VECTORS];
    for first in (0..LANES).step_by(VECTORS * width) {
        let mut sum = [[set.splat_f64(0.0); VECTORS]; 4];
        for (sum, lanes) in sum.iter_mut().zip(lanes) {
            for (at, sum) in sum.iter_mut().enumerate() {
                // SAFETY: `VECTORS` vectors from `first` on lie within the 64 lanes of a sum.
                *sum = unsafe { set.load_f64(lanes.add(first + at * width)) };
            }
        }
        for (a, b) in a.iter().zip(b) {
            if first % (LINE / size_of::<f32>()) == 0 {
                Ahead::ROWS.ask(a[first..].as_ptr());
                Ahead::ROWS.ask(b[first..].as_ptr());
            }
            for at in 0..VECTORS {
                let place = first + at * width;
                // SAFETY: as above, of a row.
                let (x, y) = unsafe {
                    (
                        set.widen(a.as_ptr().add(place)),
                        set.widen(b.as_ptr().add(place)),
                    )
                };
                let error = set.subtract_f64(x, y);
                sum[0][at] = set.add_f64(sum[0][at], set.multiply_f64(error, error));
                sum[1][at] = set.add_f64(sum[1][at], set.multiply_f64(x, x));
                sum[2][at] = set.add_f64(sum[2][at], set.multiply_f64(y, y));
                sum[3][at] = set.add_f64(sum[3][at], set.multiply_f64(x, y));
                most[at] = set.larger_f64(most[at], error);
            }
        }
        for (sum, lanes) in sum.iter().zip(lanes) {
            for (at, sum) in sum.iter().enumerate() {
                // SAFETY: as above.
                unsafe { set.store_f64(*sum, lanes.add(first + at * width)) };
            }
        }
    }
    // Room for the vectors of any set.
    let mut largest = [0.0; LANES];
    assert!(VECTORS * width <= LANES);
    for (at, most) in most.into_iter().enumerate() {
        // SAFETY: as asserted.
        unsafe { set.store_f64(most, largest.as_mut_ptr().add(at * width)) };
    }
    largest[..VECTORS * width]
        .iter()
        .copied()
        .fold(0.0, f64::max)
}

/// Defines the function of a set.
macro_rules! compare_kernel {
    ($set:ty, $features:literal) => {
        use tercet_core::quant::RowSums;

        use $crate::simd::compare::{self, Row};

        /// As specified in the table.
        #[target_feature(enable = $features)]
        pub(in crate::simd) fn rows(a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
            compare::rows(<$set>::here(), a, b, sums)
        }
    };
}
pub(in crate::simd) use compare_kernel;
