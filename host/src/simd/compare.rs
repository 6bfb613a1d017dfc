//! The table of the loops that compare a restored tensor with its original, and the loop of every set.
//!
//! The sums have one order, the 64 lanes of [`tercet_core::number::lanes`]: a vector holds neighbouring lanes, so a set's width does
//! not show. Some lanes of all four sums stay in registers while a few rows pass, then the next lanes.

use tercet_core::number::lanes::LANES;
use tercet_core::number::{Element, RUN};
use tercet_core::quant::{Comparison, QuantError, RowSums};

use super::stores::{Ahead, LINE};
use super::taken::take;
use super::{Backend, Isa, as_f32};

/// A row of values, one a lane.
pub(in crate::simd) type Row = [f32; LANES];

/// Adds the terms of as many rows to the sums, and gives the largest |original − restored|, of finite values.
type Rows = unsafe fn(&[Row], &[Row], &mut RowSums) -> f64;

/// Rows whose lanes are taken in turns: 8 KiB of both tensors, which stay in a first cache. 4 rows load and store the sums too
/// often, 32 are slower from memory.
const ROWS: usize = 16;

/// Values of [`ROWS`].
const BLOCK: usize = ROWS * LANES;

impl Backend {
    /// As [`Comparison::push`].
    pub(crate) fn compare<A: Element, B: Element>(
        self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        let rows = self.rows().filter(|_| original.len() == restored.len());
        // A copy, so that nothing is added where a value is refused.
        let mut next = comparison.clone();
        let added = rows.and_then(|rows| match (as_f32(original), as_f32(restored)) {
            (Some(original), Some(restored)) => push(rows, &mut next, original, restored),
            _ => self.push_widened(rows, &mut next, original, restored),
        });
        match added {
            Some(()) => *comparison = next,
            // What is wrong is for core to say.
            None => comparison.push(original, restored)?,
        }
        Ok(())
    }

    /// As [`push`], of values that are widened block by block.
    fn push_widened<A: Element, B: Element>(
        self,
        rows: Rows,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Option<()> {
        let (mut a, mut b) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (original, restored) in original.chunks(BLOCK).zip(restored.chunks(BLOCK)) {
            let (a, b) = (&mut a[..original.len()], &mut b[..restored.len()]);
            self.widen(original, a);
            self.widen(restored, b);
            push(rows, comparison, a, b)?;
        }
        Some(())
    }

    /// The loop over rows; none where core's own is the backend's.
    fn rows(self) -> Option<Rows> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => Some(super::avx512::compare::rows),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => Some(super::avx2::compare::rows),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon | Isa::DotProd => Some(super::neon::compare::rows),
            _ => None,
        }
    }
}

/// As [`Comparison::push`] of slices of one length: whole rows by the loop, what lies before and after them by core. `None`, and
/// some of the values added, where one is not finite.
fn push(rows: Rows, comparison: &mut Comparison, mut a: &[f32], mut b: &[f32]) -> Option<()> {
    loop {
        let (in_row, in_run) = (
            comparison.count() % LANES as u64,
            comparison.count() % RUN as u64,
        );
        let whole = (a.len() / LANES).min((RUN - in_run as usize) / LANES);
        let now = match in_row as usize {
            0 if whole > 0 => {
                push_rows(rows, comparison, &a[..whole * LANES], &b[..whole * LANES])?;
                whole * LANES
            }
            in_row => {
                let now = a.len().min(LANES - in_row);
                comparison.push(&a[..now], &b[..now]).ok()?;
                now
            }
        };
        (a, b) = (&a[now..], &b[now..]);
        if a.is_empty() {
            return Some(());
        }
    }
}

/// Whole rows of the run under way.
fn push_rows(rows: Rows, comparison: &mut Comparison, a: &[f32], b: &[f32]) -> Option<()> {
    let first = comparison.count();
    comparison.push_rows(a.len() / LANES, |sums| {
        // Where a block raised the largest error, its place is looked for at the end, in that block alone.
        let mut raised = None;
        for (block, (x, y)) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).enumerate() {
            let (x, y) = (x.as_chunks().0, y.as_chunks().0);
            // SAFETY: a loop is only reached through a `Backend` that was found to run its set. There are as many rows in both.
            let largest = unsafe { rows(x, y, sums) };
            if largest > sums.max_error {
                sums.max_error = largest;
                raised = Some(block * BLOCK);
            }
        }
        if let Some(at) = raised {
            let mut pairs = a[at..].iter().zip(&b[at..]);
            let within =
                pairs.position(|(&x, &y)| (f64::from(x) - f64::from(y)).abs() == sums.max_error);
            sums.max_index = first + (at + within.unwrap_or(0)) as u64;
        }
    })
}

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
