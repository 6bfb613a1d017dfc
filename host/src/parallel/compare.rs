//! How far a restored tensor is from the original, on rayon's threads.

use rayon::prelude::*;
use tercet_core::number::{Element, RUN};
use tercet_core::quant::{Comparison, QuantError};

use super::{Threads, moved};

/// Runs that are compared before their 2 KiB each are folded: half a mebibyte, for 16 million values.
const RUNS: usize = 256;

/// Compares two tensors: what [`Comparison::push`] of the whole gives, to the bit, for any number of threads.
///
/// # Errors
/// [`QuantError::Length`] for tensors of different lengths; [`QuantError::NotFinite`] with the lowest index at
/// which either value is a NaN or an infinity.
///
/// # Example
/// ```
/// let comparison = tercet_host::parallel::compare(&[3.0f32, -4.0], &[3.0f32, -3.5])?;
/// assert_eq!(comparison.finish().unwrap().squared_error, 0.25);
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
pub fn compare<A: Element, B: Element>(
    original: &[A],
    restored: &[B],
) -> Result<Comparison, QuantError> {
    let mut comparison = Comparison::new();
    compare_next(&mut comparison, original, restored)?;
    Ok(comparison)
}

/// [`Comparison::push`] with the same bits and errors, on rayon's threads.
///
/// Values up to the end of the run under way go on the calling thread, then whole runs side by side, so chunks
/// should be multiples of [`RUN`] values, or many times longer. 512 KiB of memory besides.
pub fn compare_next<A: Element, B: Element>(
    comparison: &mut Comparison,
    original: &[A],
    restored: &[B],
) -> Result<(), QuantError> {
    Threads::default().compare_next(comparison, original, restored)
}

impl Threads {
    /// As [`compare_next`], by this engine's backend.
    pub fn compare_next<A: Element, B: Element>(
        &self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        if original.len() != restored.len() {
            return Err(QuantError::Length {
                expected: original.len(),
                found: restored.len(),
            });
        }
        // A copy, so that nothing is added where a value is refused.
        let mut next = comparison.clone();
        let left = (RUN - (next.count() % RUN as u64) as usize) % RUN;
        let (a_head, a) = original.split_at(left.min(original.len()));
        let (b_head, b) = restored.split_at(left.min(restored.len()));
        self.backend.compare(&mut next, a_head, b_head)?;
        for (a, b) in a.chunks(RUNS * RUN).zip(b.chunks(RUNS * RUN)) {
            let runs: Vec<_> = (a.par_chunks(RUN).zip(b.par_chunks(RUN)))
                .map(|(a, b)| {
                    let mut run = Comparison::new();
                    self.backend.compare(&mut run, a, b).map(|()| run)
                })
                .collect();
            // In order, so that the lowest index is the one reported.
            for run in runs {
                let run = run.map_err(|error| moved(error, next.count()))?;
                next.append(&run).expect("every run but the last is whole");
            }
        }
        *comparison = next;
        Ok(())
    }
}
