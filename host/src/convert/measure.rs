//! Measures how far a tensor's codes are from the original values.
//!
//! Sums are made over the runs of the number rules, which threads process in parallel; the result depends neither on
//! threads nor on chunks.

use std::ops::Range;

use tercet_core::number::RUN;
use tercet_core::quant::{Comparison, Measures};

use super::span::Span;
use crate::Error;
use crate::parallel::each::{both, numbers};
use crate::parallel::moved;
use crate::simd::Backend;
use crate::source::{Source, TILE};

/// The comparison of a tensor so far.
#[derive(Debug, Default)]
pub(crate) struct Loss(Comparison);

/// Compares more values of a run, which began at value `run`, with their restored values.
pub(crate) fn compare(
    source: &Source<'_>,
    run: usize,
    comparison: &mut Comparison,
    values: &[f32],
    restored: &[f32],
) -> Result<(), Error> {
    let compared = Backend::default().compare(comparison, values, restored);
    compared
        .map_err(|error| Error::tensor(source.path, source.tensor.name, moved(error, run as u64)))
}

impl Loss {
    /// Appends the next run; every one but the last is whole.
    pub(crate) fn append(&mut self, run: &Comparison) {
        self.0.append(run).expect("every run but the last is whole");
    }

    /// Continues with the values of a chunk of any length. `restore` makes restored values from a place on, from their
    /// originals or from codes known for their place, or reports why it cannot.
    pub(super) fn chunk(
        &mut self,
        chunk: Span<'_, '_>,
        restore: impl Fn(usize, &[f32], &mut [f32]) -> Result<(), String> + Sync,
    ) -> Result<(), Error> {
        let (source, start, end) = (chunk.source, chunk.first, chunk.end());
        // The rest of the current run continues from its state; whole runs need not wait for it.
        let head = start.next_multiple_of(RUN).min(end);
        let whole = &mut self.0;
        let (first, runs) = both(
            || tiles(source, 0, start..head, whole, &restore),
            || {
                numbers(0..(end - head).div_ceil(RUN)).gather(|_, run| {
                    let first = head + run * RUN;
                    let mut run = Comparison::new();
                    let values = first..end.min(first + RUN);
                    tiles(source, first, values, &mut run, &restore).map(|()| run)
                })
            },
        );
        first?;
        // In order, so that the lowest index is reported.
        for run in runs {
            self.append(&run?);
        }
        Ok(())
    }

    /// Returns the measures of the compared values; `None` if there are none.
    pub(crate) fn finish(&self) -> Option<Measures> {
        self.0.finish()
    }
}

fn tiles(
    source: &Source<'_>,
    run: usize,
    values: Range<usize>,
    comparison: &mut Comparison,
    restore: &(impl Fn(usize, &[f32], &mut [f32]) -> Result<(), String> + Sync),
) -> Result<(), Error> {
    let (mut buffer, mut restored) = (Vec::new(), Vec::new());
    for at in values.clone().step_by(TILE) {
        let len = TILE.min(values.end - at);
        let original = source.view(at, len, &mut buffer)?;
        restored.resize(len, 0.0);
        restore(at, original, &mut restored)
            .map_err(|reason| Error::tensor(source.path, source.tensor.name, reason))?;
        compare(source, run, comparison, original, &restored)?;
    }
    Ok(())
}
