//! How far codes are from the values they came from, run by run on all threads.

use rayon::prelude::*;
use tercet_core::number::RUN;
use tercet_core::quant::{Comparison, Measures};

use crate::Error;
use crate::parallel::moved;
use crate::simd::Backend;
use crate::source::{Source, TILE};

/// Runs whose comparisons, 2 KiB each, are kept before they are folded.
const RUNS: usize = 256;

/// Compares a source with what `restore` writes: the values from a given one on. `None` without values.
pub(crate) fn measure(
    source: &Source<'_>,
    restore: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<Option<Measures>, Error> {
    let refuse = |reason| Error::tensor(source.path, source.tensor.name, reason);
    let values = source.values();
    let count = values.div_ceil(RUN);
    let mut whole = Comparison::new();
    for first_run in (0..count).step_by(RUNS) {
        let runs: Vec<Result<Comparison, Error>> = (first_run..count.min(first_run + RUNS))
            .into_par_iter()
            .map_init(
                || (Vec::new(), Vec::new()),
                |(original, restored), run| {
                    let first = run * RUN;
                    let end = values.min(first + RUN);
                    let mut comparison = Comparison::new();
                    for at in (first..end).step_by(TILE) {
                        let len = TILE.min(end - at);
                        restored.resize(len, 0.0f32);
                        let original = source.view(at, len, original)?;
                        restore(at, restored);
                        Backend::default()
                            .compare(&mut comparison, original, restored)
                            .map_err(|error| refuse(moved(error, first as u64)))?;
                    }
                    Ok(comparison)
                },
            )
            .collect();
        // In order, so that the lowest index is the one reported.
        for run in runs {
            whole
                .append(&run?)
                .expect("every run but the last is whole");
        }
    }
    Ok(whole.finish())
}
