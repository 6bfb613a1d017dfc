//! Compares a restored tensor with the original on rayon's threads.

use tercet_core::engine::QuantizeEngine;
use tercet_core::number::{Element, RUN};
use tercet_core::quant::{Comparison, QuantError};

use super::each::chunks;
use super::{Threads, moved};

/// Runs that are compared before their 2 KiB each are folded: half a mebibyte, for 16 million values.
const RUNS: usize = 256;

/// Compares two tensors, with the bits of [`Comparison::push`] of the whole, for any number of threads.
///
/// # Errors
/// [`QuantError::Length`] for tensors of different lengths; [`QuantError::NotFinite`] with the lowest index at which
/// either value is a NaN or an infinity.
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
    Threads::default().compare(&mut comparison, original, restored)?;
    Ok(comparison)
}

impl Threads {
    /// As [`QuantizeEngine::compare`] for one comparison and then for another, but runs of both are summed only once,
    /// if both are at the same place of a run.
    ///
    /// The index of a refusal is that of the first comparison; then nothing is added to either.
    pub(crate) fn compare_both<A: Element, B: Element>(
        &self,
        first: &mut Comparison,
        second: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        let at = |comparison: &Comparison| comparison.count() % RUN as u64;
        if at(first) == at(second) {
            return self.compare_runs([first, second], original, restored);
        }
        // The second accepts the same input as the first.
        self.compare_runs([first], original, restored)?;
        self.compare_runs([second], original, restored)
    }

    /// Continues comparisons, at least one, that are at the same place of a run. The calling thread processes values up
    /// to the end of that run, then whole runs are processed in parallel; takes 512 KiB of additional memory.
    pub(super) fn compare_runs<A: Element, B: Element, const N: usize>(
        &self,
        comparisons: [&mut Comparison; N],
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        if original.len() != restored.len() {
            return Err(QuantError::Length {
                expected: original.len(),
                found: restored.len(),
            });
        }
        // Copies, so that nothing is added if a value is refused.
        let mut next = comparisons
            .each_ref()
            .map(|comparison| (**comparison).clone());
        let count = next[0].count();
        let left = (RUN - (count % RUN as u64) as usize) % RUN;
        let (a_head, a) = original.split_at(left.min(original.len()));
        let (b_head, b) = restored.split_at(left.min(restored.len()));
        for next in &mut next {
            self.backend.compare(next, a_head, b_head)?;
        }
        // With one thread nothing is shared.
        if self.alone {
            for next in &mut next {
                self.backend.compare(next, a, b)?;
            }
        }
        let (a, b) = if self.alone {
            (&a[..0], &b[..0])
        } else {
            (a, b)
        };
        for (a, b) in a.chunks(RUNS * RUN).zip(b.chunks(RUNS * RUN)) {
            let runs = (chunks(a, RUN).zip(chunks(b, RUN))).gather(|_, (a, b)| {
                let mut run = Comparison::new();
                self.backend.compare(&mut run, a, b).map(|()| run)
            });
            // In order, so that the lowest index is reported.
            for run in runs {
                let run = run.map_err(|error| moved(error, next[0].count()))?;
                for next in &mut next {
                    next.append(&run).expect("every run but the last is whole");
                }
            }
        }
        for (comparison, next) in comparisons.into_iter().zip(next) {
            *comparison = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For equal and different places in a run, and any earlier values.
    #[test]
    fn two_at_once_are_each_alone() {
        let values = |seed: u64| -> Vec<f32> {
            let mut random = tercet_core::number::Random::new(seed);
            let draw = || random.below(20_001) as f32 / 7.0 - 1400.0;
            std::iter::repeat_with(draw).take(3 * RUN + 5).collect()
        };
        let (a, b) = (values(1), values(2));
        let mut threads = Threads::default();
        let begun = |count: usize| {
            let mut begun = Comparison::new();
            begun.push(&b[..count], &a[..count]).unwrap();
            begun
        };
        for (before, also) in [(0, 0), (0, RUN), (7, 7), (7, RUN + 7), (0, 7), (64, 1)] {
            for len in [0, 9, RUN, a.len()] {
                let (mut first, mut second) = (begun(before), begun(also));
                let (mut alone, mut other) = (first.clone(), second.clone());
                let (a, b) = (&a[..len], &b[..len]);
                (threads.compare_both(&mut first, &mut second, a, b)).unwrap();
                threads.compare(&mut alone, a, b).unwrap();
                threads.compare(&mut other, a, b).unwrap();
                assert!(first == alone && second == other, "{before} {also} {len}");
            }
            let mut bad = a.clone();
            bad[RUN + 3] = f32::NAN;
            let (mut first, mut second) = (begun(before), begun(also));
            let refused = threads.compare_both(&mut first, &mut second, &bad, &b);
            let index = (before + RUN + 3) as u64;
            assert_eq!(refused, Err(QuantError::NotFinite { index }));
            assert!(first == begun(before) && second == begun(also));
        }
    }
}
