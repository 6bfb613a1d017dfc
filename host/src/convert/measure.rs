//! How far a tensor's codes are from the values they came from.
//!
//! Sums follow the number rules' runs, which threads take side by side; neither threads nor chunks show.

use std::ops::Range;

use tercet_core::number::RUN;
use tercet_core::quant::{Comparison, Measures};

use super::span::Span;
use crate::Error;
use crate::parallel::each::{both, numbers};
use crate::parallel::moved;
use crate::simd::Backend;
use crate::source::{Source, TILE};

/// What has been compared of a tensor so far.
#[derive(Debug, Default)]
pub(crate) struct Loss(Comparison);

/// Compares more values of a run, which began at value `run`, with what was restored for them.
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
    /// Goes on with the next run; every one but the last is whole.
    pub(crate) fn append(&mut self, run: &Comparison) {
        self.0.append(run).expect("every run but the last is whole");
    }

    /// Goes on with the values of a chunk of any length; `restore` makes those that begin at a value of the tensor from their
    /// originals, or from the codes that are known for their place, or says why they cannot be made.
    pub(super) fn chunk(
        &mut self,
        chunk: Span<'_, '_>,
        restore: impl Fn(usize, &[f32], &mut [f32]) -> Result<(), String> + Sync,
    ) -> Result<(), Error> {
        let (source, start, end) = (chunk.source, chunk.first, chunk.end());
        // The rest of the run under way goes on where it stood; whole runs need not wait for it.
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
        // In order, so that the lowest index is the one reported.
        for run in runs {
            self.append(&run?);
        }
        Ok(())
    }

    /// The measures of what has been compared; `None` of nothing.
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
