//! Lloyd's loop (*Least squares quantization in PCM*, 1982) in exact integers.

use super::{Best, Update};
use crate::engine::{Assigned, ClusterProblem};

/// Conditions at which Lloyd's loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Lloyd {
    /// Largest number of steps (epochs for mini-batches).
    pub max_iter: u32,
    /// The loop ends if a step lowers the inertia by at most this many millionths of it.
    ///
    /// With 0, it ends if the labels, or at least the inertia, do not change.
    pub tol_ppm: u32,
}

impl Default for Lloyd {
    /// Returns 300 steps without tolerance: a complete run.
    fn default() -> Self {
        Self {
            max_iter: 300,
            tol_ppm: 0,
        }
    }
}

impl Lloyd {
    /// Returns true if the fall from `last` to `now` is within the tolerance. An equal inertia always is; a rise
    /// never is.
    pub(super) fn ends(&self, last: u64, now: u64) -> bool {
        let Some(fall) = last.checked_sub(now) else {
            return false;
        };
        u128::from(fall) * 1_000_000 <= u128::from(self.tol_ppm) * u128::from(last)
    }
}

/// Reason why clustering ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stop {
    /// No label changed: a fixed point.
    Labels,
    /// Labels changed, but the inertia did not: points moved between equally near centroids.
    Inertia,
    /// The inertia fell by at most the tolerance.
    Tolerance,
    /// The largest number of steps was reached.
    Iterations,
}

/// Result of clustering; labels, centroids and sums are in the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Outcome {
    /// Σ w·D² between the labelled points and the int8 centroids that the problem now holds.
    pub inertia: u64,
    /// Number of steps (epochs for mini-batches).
    pub iterations: u32,
    /// Reason why it ended.
    pub stop: Stop,
    /// Number of times that an empty cluster got the coordinates of a far point.
    pub reseeded: u64,
    /// Clusters without members at the end, because there are fewer distinct points than clusters.
    pub empty: usize,
}

impl Outcome {
    /// The outcome before the first step.
    pub(super) const NONE: Self = Self {
        inertia: 0,
        iterations: 0,
        stop: Stop::Iterations,
        reseeded: 0,
        empty: 0,
    };
}

/// Runs Lloyd's loop from the centroids that the problem holds.
///
/// Each step assigns every point to its nearest centroid and moves each centroid to the rounded mean of its members.
/// This is the best integer centroid, so plain inertia never rises. If clusters become empty, the j-th empty one gets
/// the coordinates of the j-th farthest point. The loop ends for one of the reasons in [`Stop`], but never with
/// [`Stop::Inertia`] or [`Stop::Tolerance`] directly after a step with empty clusters. Then points are assigned once
/// more, so that labels, distances, sums and inertia belong to the returned centroids. The inertia of spherical runs
/// can rise: they return the best centroids seen, and need [`crate::engine::Buffers::kept`].
///
/// The function calls `observe` with the step, from 1, and the inertia of its assignment.
///
/// O(n·k·d) per step.
pub fn lloyd<P: ClusterProblem>(
    problem: &mut P,
    options: &Lloyd,
    observe: &mut dyn FnMut(u32, u64),
) -> Result<Outcome, P::Error> {
    let mut best = Best::new(matches!(problem.shape().update, Update::Sphere(_)));
    let outcome = run(problem, options, &mut best, observe)?;
    finish(problem, outcome, &best)
}

/// Runs the loop. `best` sees every set of centroids that the update rule might lose.
pub(super) fn run<P: ClusterProblem>(
    problem: &mut P,
    options: &Lloyd,
    best: &mut Best,
    observe: &mut dyn FnMut(u32, u64),
) -> Result<Outcome, P::Error> {
    let rises = matches!(problem.shape().update, Update::Sphere(_));
    let mut outcome = Outcome::NONE;
    let mut last = None;
    while outcome.iterations < options.max_iter {
        outcome.iterations += 1;
        let Assigned { inertia, changed } = if rises {
            let assigned = problem.assign()?;
            best.offer(problem, assigned.inertia)?;
            problem.update()?;
            assigned
        } else {
            problem.assign_update()?
        };
        observe(outcome.iterations, inertia);
        if changed == 0 && last.is_some() {
            // The same labels have the same sums, so the update changed nothing: the run is complete.
            outcome.stop = Stop::Labels;
            outcome.inertia = inertia;
            best.offer(problem, inertia)?;
            return Ok(outcome);
        }
        let reseeded = reseed(problem)?;
        outcome.reseeded += reseeded;
        if let (0, Some(last)) = (reseeded, last) {
            if inertia == last {
                outcome.stop = Stop::Inertia;
                break;
            }
            if options.ends(last, inertia) {
                outcome.stop = Stop::Tolerance;
                break;
            }
        }
        last = Some(inertia);
    }
    outcome.inertia = problem.assign()?.inertia;
    best.offer(problem, outcome.inertia)?;
    Ok(outcome)
}

/// Restores the best centroids and their labels if some were kept, and counts empty clusters.
pub(super) fn finish<P: ClusterProblem>(
    problem: &mut P,
    mut outcome: Outcome,
    best: &Best,
) -> Result<Outcome, P::Error> {
    if best.inertia().is_some() {
        problem.restore()?;
        outcome.inertia = problem.assign()?.inertia;
    }
    outcome.empty = 0;
    let mut from = 0;
    while let Some(cluster) = problem.next_empty(from)? {
        outcome.empty += 1;
        from = cluster + 1;
    }
    Ok(outcome)
}

/// Gives the j-th empty cluster the coordinates of the j-th farthest point. Returns the number of clusters that got
/// some.
pub(super) fn reseed<P: ClusterProblem>(problem: &mut P) -> Result<u64, P::Error> {
    let mut reseeded = 0;
    let mut far = None;
    let mut from = 0;
    while let Some(cluster) = problem.next_empty(from)? {
        let Some(next) = problem.farthest(far)? else {
            break;
        };
        problem.place(cluster, next.index)?;
        far = Some(next);
        from = cluster + 1;
        reseeded += 1;
    }
    Ok(reseeded)
}
