//! Lloyd's loop (*Least squares quantization in PCM*, 1982) in exact integers.

use super::{Best, Update};
use crate::engine::{Assigned, ClusterProblem};

/// When Lloyd's loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Lloyd {
    /// The most steps (epochs, of a mini-batch run).
    pub max_iter: u32,
    /// Ends where inertia fell by no more than that many millionths of itself in a step.
    ///
    /// With 0 it ends where the labels, or at least the inertia, stay.
    pub tol_ppm: u32,
}

impl Default for Lloyd {
    /// 300 steps, no tolerance: to the end.
    fn default() -> Self {
        Self {
            max_iter: 300,
            tol_ppm: 0,
        }
    }
}

impl Lloyd {
    /// Whether a fall from `last` to `now` is within the tolerance; an equal inertia always is, a rise never.
    pub(super) fn ends(&self, last: u64, now: u64) -> bool {
        let Some(fall) = last.checked_sub(now) else {
            return false;
        };
        u128::from(fall) * 1_000_000 <= u128::from(self.tol_ppm) * u128::from(last)
    }
}

/// Why clustering ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stop {
    /// No label changed: a fixed point.
    Labels,
    /// Labels changed and the inertia did not: points moved between equally near centroids.
    Inertia,
    /// The inertia fell by no more than the tolerance.
    Tolerance,
    /// The steps ran out.
    Iterations,
}

/// How clustering went; labels, centroids and sums are in the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Outcome {
    /// Σ w·D² of the labels to the int8 centroids that the problem now holds.
    pub inertia: u64,
    /// Steps taken (epochs, of a mini-batch run).
    pub iterations: u32,
    /// Why it ended.
    pub stop: Stop,
    /// How often an empty cluster was given the coordinates of a far point.
    pub reseeded: u64,
    /// Clusters without members at the end: fewer distinct points than clusters.
    pub empty: usize,
}

impl Outcome {
    /// Before the first step.
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
/// Each step assigns every point to its nearest centroid and moves each centroid to the rounded mean of its members,
/// which is the best integer centroid, so plain inertia never rises. Where clusters were left empty, the j-th of them
/// gets the coordinates of the j-th farthest point. The loop ends as [`Stop`] says, but never right after such a
/// step with [`Stop::Inertia`] or [`Stop::Tolerance`]. Then points are assigned once more, so that labels,
/// distances, sums and inertia are those of the centroids returned. Spherical runs can rise: they return the
/// best centroids seen, and need [`crate::engine::Buffers::kept`].
///
/// `observe` hears the step, from 1, and the inertia that its assignment found.
///
/// O(n·k·d) a step.
pub fn lloyd<P: ClusterProblem>(
    problem: &mut P,
    options: &Lloyd,
    observe: &mut dyn FnMut(u32, u64),
) -> Result<Outcome, P::Error> {
    let mut best = Best::new(matches!(problem.shape().update, Update::Sphere(_)));
    let outcome = run(problem, options, &mut best, observe)?;
    finish(problem, outcome, &best)
}

/// The loop; `best` sees every set of centroids that the update rule might lose.
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
            // The same labels have the same sums, so the update changed nothing: all is settled.
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

/// Brings back the best centroids where some were kept, with their labels, and counts empty clusters.
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

/// Gives the j-th empty cluster the coordinates of the j-th farthest point; how many got some.
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
