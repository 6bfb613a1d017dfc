//! k-means from the seeds to the best of several restarts.

use super::{Best, Init, Lloyd, Outcome, Update, lloyd, minibatch, seed};
use crate::engine::ClusterProblem;
use crate::number::Random;

/// Options of a k-means run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Kmeans {
    /// Method that chooses the first centroids of each restart.
    pub init: Init,
    /// Number of restarts, of which the best is returned. 0 counts as 1, and [`Init::Given`] runs once.
    pub restarts: u32,
    /// Conditions at which a restart ends.
    pub lloyd: Lloyd,
    /// Seed of the one stream of random draws.
    pub seed: u64,
}

impl Default for Kmeans {
    /// Returns options for one complete run from greedy k-means++ seeds.
    fn default() -> Self {
        Self {
            init: Init::Greedy,
            restarts: 1,
            lloyd: Lloyd::default(),
            seed: 0,
        }
    }
}

/// Steps with all points, or with batches of points.
#[derive(Debug)]
pub enum Steps<'a> {
    /// Lloyd's loop: every step takes every point.
    Full,
    /// [`super::mini_batch`].
    Batches {
        /// Scratch; its length is the batch size.
        batch: &'a mut [u32],
        /// Count at which sums and counts are halved.
        cap: u32,
    },
}

/// Runs k-means on the problem's points. Leaves the labels, distances, sums and centroids of the best restart in the
/// problem.
///
/// More than one restart, mini-batches and spherical runs need [`crate::engine::Buffers::kept`]. The function calls
/// `observe` with the restart (from 0), the step (from 1) and the inertia.
///
/// # Errors
/// Those of the engine and of [`super::mini_batch`].
///
/// # Example
/// ```
/// use tercet_core::cluster::{Kmeans, Points, Steps, Stop, Update, kmeans};
/// use tercet_core::engine::Buffers;
/// use tercet_core::scalar::Clusters;
///
/// let points = Points::new(&[0, 1, 2, 50, 51, 52], 1)?;
/// let buffers = Buffers {
///     labels: &mut [0; 6],
///     distances: &mut [0; 6],
///     centroids: &mut [0; 2],
///     kept: &mut [],
///     norms: &mut [0; 2],
///     sums: &mut [0i32; 2],
///     counts: &mut [0; 2],
/// };
/// let mut clusters = Clusters::new(points, 2, Update::Mean, buffers)?;
/// let outcome = kmeans(&mut clusters, &Kmeans::default(), &mut Steps::Full, &mut |_, _, _| ())?;
/// assert_eq!((outcome.inertia, outcome.stop), (4, Stop::Labels));
/// let mut centroids = [clusters.centroids()[0], clusters.centroids()[1]];
/// centroids.sort();
/// assert_eq!(centroids, [1, 51]);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn kmeans<P: ClusterProblem>(
    problem: &mut P,
    options: &Kmeans,
    steps: &mut Steps<'_>,
    observe: &mut dyn FnMut(u32, u32, u64),
) -> Result<Outcome, P::Error> {
    // Destructured, so that a firmware image in which the options are constants contains no code for other values.
    let Kmeans {
        init,
        restarts,
        lloyd,
        seed,
    } = *options;
    let restarts = match init {
        Init::Given => 1,
        _ => restarts.max(1),
    };
    let rises = matches!(problem.shape().update, Update::Sphere(_))
        || matches!(steps, Steps::Batches { .. });
    let mut best = Best::new(restarts > 1 || rises);
    let mut random = Random::new(seed);
    let mut found: Option<Outcome> = None;
    for restart in 0..restarts {
        seed::seed(problem, init, &mut random)?;
        let mut observe = |step, inertia| observe(restart, step, inertia);
        let before = best.inertia();
        let outcome = match steps {
            Steps::Full => lloyd::run(problem, &lloyd, &mut best, &mut observe)?,
            Steps::Batches { batch, cap } => {
                let draws = (&mut random, &mut **batch);
                minibatch::run(problem, &lloyd, *cap, draws, &mut best, &mut observe)?
            }
        };
        if found.is_none() || best.inertia() != before {
            found = Some(outcome);
        }
    }
    lloyd::finish(problem, found.unwrap_or(Outcome::NONE), &best)
}
