//! Tensors of any length: a set's loop processes whole rows, and core the values before and after them.

use tercet_core::number::lanes::LANES;
use tercet_core::number::{Element, RUN};
use tercet_core::quant::{Comparison, QuantError};

use super::Rows;
use crate::simd::{Backend, as_f32};

/// Rows whose lanes are processed in turns: 8 KiB of both tensors, which stay in a first-level cache. 4 rows load and
/// store the sums too often, and 32 are slower from memory.
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
        let rows = self
            .kernels()
            .compare()
            .filter(|_| original.len() == restored.len());
        // A copy, so that nothing is added if a value is refused.
        let mut next = comparison.clone();
        let added = rows.and_then(|rows| match (as_f32(original), as_f32(restored)) {
            (Some(original), Some(restored)) => push(rows, &mut next, original, restored),
            _ => self.push_widened(rows, &mut next, original, restored),
        });
        match added {
            Some(()) => *comparison = next,
            // Core reports the error.
            None => comparison.push(original, restored)?,
        }
        Ok(())
    }

    /// As [`push`], for values that are widened block by block.
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
}

/// As [`Comparison::push`] for slices of equal length: the loop processes whole rows, and core the values before and
/// after them. `None`, with some of the values added, if one is not finite.
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

/// Adds whole rows of the current run.
fn push_rows(rows: Rows, comparison: &mut Comparison, a: &[f32], b: &[f32]) -> Option<()> {
    let first = comparison.count();
    comparison.push_rows(a.len() / LANES, |sums| {
        // If a block raised the largest error, its place is searched at the end, only in that block.
        let mut raised = None;
        for (block, (x, y)) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).enumerate() {
            let (x, y) = (x.as_chunks().0, y.as_chunks().0);
            // SAFETY: a loop is only reached through a `Backend` that was found to run its set. There are as many rows
            // in both.
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
