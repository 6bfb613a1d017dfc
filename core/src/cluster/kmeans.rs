//! k-means from nothing to the best of several restarts.

use super::{Best, Init, Lloyd, Outcome, Update, lloyd, minibatch, seed};
use crate::engine::ClusterProblem;
use crate::number::Random;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Kmeans {
    /// How each restart chooses its first centroids.
    pub init: Init,
    /// Restarts, the best of which is returned; 0 counts as 1, and [`Init::Given`] runs once.
    pub restarts: u32,
    /// When a restart ends.
    pub lloyd: Lloyd,
    /// Seeds the one stream of draws.
    pub seed: u64,
}

impl Default for Kmeans {
    /// One run from greedy k-means++ seeds, to the end.
    fn default() -> Self {
        Self {
            init: Init::Greedy,
            restarts: 1,
            lloyd: Lloyd::default(),
            seed: 0,
        }
    }
}

/// Whether steps take all points or a few.
#[derive(Debug)]
pub enum Steps<'a> {
    /// Lloyd's loop: every point, every step.
    Full,
    /// [`super::mini_batch`].
    Batches {
        /// Scratch; its length is the batch.
        batch: &'a mut [u32],
        /// The count at which sums and counts are halved.
        cap: u32,
    },
}

/// Runs k-means on what the problem holds and leaves labels, distances, sums and centroids of the best restart there.
///
/// More than one restart, mini-batches and spherical runs need [`crate::engine::Buffers::kept`].
/// `observe` hears restart (from 0), step (from 1) and inertia.
///
/// # Errors
/// The engine's; those of [`super::mini_batch`].
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
    // Taken apart, so that an image in which they are constants holds no code for others.
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
