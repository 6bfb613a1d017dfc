//! Mini-batch k-means (Sculley, *Web-scale k-means clustering*, 2010) with running integer sums.

use super::lloyd::{finish, reseed};
use super::{Best, ClusterError, Lloyd, Outcome, Stop};
use crate::engine::ClusterProblem;
use crate::number::Random;

/// Largest cap of a count: 2²⁴ points of magnitude 128 sum to at least −2³¹, so 32 bits hold every sum.
pub const MAX_CAP: u32 = 1 << 24;

/// Default cap of mini-batches; it leaves room for batches of 2²³ points.
pub const BATCH_CAP: u32 = 1 << 23;

/// Runs mini-batches from the centroids that the problem holds.
///
/// A batch is `batch.len()` points drawn with replacement. The points are assigned to the current centroids and added
/// to their running sums and counts, which start empty. A centroid is the rounded mean of its sum. If a count reaches
/// `cap`, sum and count are halved (at the same mean), so that older points lose weight; [`BATCH_CAP`] only keeps
/// sums exact. An epoch is n / batch steps, rounded up. After each epoch, all points are measured, the best centroids
/// so far are kept, and clusters that no batch ever reached get far points. The run ends like Lloyd's loop, counted
/// in epochs. It returns the best centroids seen with their labels, because mini-batches need not improve. It needs
/// [`crate::engine::Buffers::kept`].
///
/// `batch` is scratch; its length is the batch size. The function calls `observe` with the epoch, from 1, and its
/// inertia.
///
/// O(n·k·d) per epoch, twice: once in batches and once to measure.
///
/// # Errors
/// [`ClusterError::Empty`] for a batch of no points; [`ClusterError::Cap`] for a cap outside 2 to [`MAX_CAP`];
/// [`ClusterError::Batch`] if a batch could raise a count above [`MAX_CAP`].
pub fn mini_batch<P: ClusterProblem>(
    problem: &mut P,
    options: &Lloyd,
    cap: u32,
    random: &mut Random,
    batch: &mut [u32],
    observe: &mut dyn FnMut(u32, u64),
) -> Result<Outcome, P::Error> {
    let mut best = Best::new(true);
    let outcome = run(problem, options, cap, (random, batch), &mut best, observe)?;
    finish(problem, outcome, &best)
}

/// Runs the epochs; `best` sees the centroids of each.
pub(super) fn run<P: ClusterProblem>(
    problem: &mut P,
    options: &Lloyd,
    cap: u32,
    (random, batch): (&mut Random, &mut [u32]),
    best: &mut Best,
    observe: &mut dyn FnMut(u32, u64),
) -> Result<Outcome, P::Error> {
    let shape = problem.shape();
    check(batch.len(), shape.heaviest, cap)?;
    let mut outcome = Outcome {
        inertia: 0,
        iterations: 0,
        stop: Stop::Iterations,
        reseeded: 0,
        empty: 0,
    };
    problem.start_batches()?;
    let mut last = None;
    while outcome.iterations < options.max_iter {
        outcome.iterations += 1;
        for _ in 0..shape.points.div_ceil(batch.len().max(1)) {
            for point in batch.iter_mut() {
                // There are fewer than 2³² points.
                *point = random.below(shape.points as u64) as u32;
            }
            problem.batch(batch, cap)?;
        }
        let assigned = problem.measure()?;
        observe(outcome.iterations, assigned.inertia);
        best.offer(problem, assigned.inertia)?;
        if assigned.changed == 0 {
            outcome.stop = Stop::Labels;
            break;
        }
        let reseeded = reseed(problem)?;
        outcome.reseeded += reseeded;
        if let (0, Some(last)) = (reseeded, last) {
            if assigned.inertia == last {
                outcome.stop = Stop::Inertia;
                break;
            }
            if options.ends(last, assigned.inertia) {
                outcome.stop = Stop::Tolerance;
                break;
            }
        }
        last = Some(assigned.inertia);
    }
    outcome.inertia = problem.assign()?.inertia;
    best.offer(problem, outcome.inertia)?;
    Ok(outcome)
}

/// Checks that no count can exceed [`MAX_CAP`]: a count of one below the cap plus a whole batch of the heaviest
/// point.
fn check(batch: usize, heaviest: u32, cap: u32) -> Result<(), ClusterError> {
    if batch == 0 {
        return Err(ClusterError::Empty);
    }
    if !(2..=MAX_CAP).contains(&cap) {
        return Err(ClusterError::Cap { cap });
    }
    let weight = (batch as u64).saturating_mul(u64::from(heaviest));
    let limit = u64::from(MAX_CAP - (cap - 1));
    if weight > limit {
        return Err(ClusterError::Batch { weight, limit });
    }
    Ok(())
}
