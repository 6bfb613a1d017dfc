//! Histograms for calibration, on rayon's threads.

use tercet_core::number::Element;
use tercet_core::quant::{HOST_BITS, Histogram, QuantError};
use tracing::trace_span;

use super::each::{chunks, items_mut};
use super::{Threads, moved};
use crate::simd::Counts;

/// Minimum number of values per thread, because each thread also clears and folds a mebibyte of counts.
const SHARE: usize = 1 << 18;

/// Counts values, with the result and the errors of [`Histogram::push`], for any number of threads.
///
/// O(n + threads · 2^16). Takes a mebibyte of counts per thread, but none for fewer than 262,144 values or more than
/// [`HOST_BITS`] bits, where values go into the histogram one by one.
///
/// # Errors
/// [`QuantError::NotFinite`] at the first NaN or infinity, with its index in the whole stream; the values before it are
/// counted.
///
/// # Example
/// ```
/// use tercet_core::engine::QuantizeEngine;
/// use tercet_core::quant::calibrate::{RangeRule, Scheme, calibrate};
/// use tercet_core::quant::{HOST_BITS, Histogram};
/// use tercet_host::parallel::Threads;
///
/// let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
/// let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets)?;
/// Threads::default().histogram(&[0.5f32, -2.0, 1.25], &mut histogram)?;
/// let found = calibrate(&histogram, RangeRule::AbsMax, Scheme::Symmetric)?;
/// assert_eq!(found.grid.scale, 2.0 / 127.0);
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
pub(super) fn count<T: Element, const B: u32>(
    threads: &Threads,
    values: &[T],
    histogram: &mut Histogram<'_, B>,
) -> Result<(), QuantError> {
    if values.len() < SHARE || B > HOST_BITS {
        return histogram.push(values);
    }
    let jobs = (values.len() / SHARE).clamp(1, threads.threads());
    let mut counts: Vec<Counts> = (0..jobs).map(|_| Counts::new()).collect();
    let most = usize::try_from(Counts::MOST).unwrap_or(usize::MAX);
    // One part, unless there are more values than 32-bit counts can hold.
    for values in values.chunks(most.saturating_mul(jobs)) {
        let start = histogram.count();
        let share = values.len().div_ceil(jobs);
        let count = |counts: &mut Counts, values: &[T]| {
            let _span = trace_span!("count", len = values.len()).entered();
            counts.push(threads.backend, values)
        };
        let jobs = items_mut(&mut counts).zip(chunks(values, share));
        let results = jobs.gather(|_, (counts, values)| count(counts, values));
        // In order, so that the first error is that of the lowest index, and later values are not counted.
        for (job, (counts, result)) in counts.iter_mut().zip(results).enumerate() {
            counts.add_to(histogram);
            result.map_err(|error| moved(error, start + (job * share) as u64))?;
        }
    }
    Ok(())
}
