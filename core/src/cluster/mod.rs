//! Clustering of int8 points in exact integers: the same labels and centroids on every machine.
//!
//! Points are int8 vectors, and so are centroids: the mean of a cluster's members, an exact integer sum over a count,
//! rounded once. Scores and distances are exact integers, ties go to the lowest index, draws come from one generator.
//! So threads, lanes, the order of sums and the machine cannot show, and a rounded mean is the best
//! integer centroid, so Lloyd's loop never raises inertia.
//!
//! | | |
//! |---|---|
//! | [`kmeans`] | seeding, Lloyd's loop or mini-batches, restarts: the whole |
//! | [`seed()`], [`lloyd()`], [`mini_batch`] | its parts |
//! | [`Online`], [`OnlineMut`] | one point at a time, for streams on small machines; over arrays or slices |
//! | [`nearest`], [`predict`], [`transform`], [`inertia`], [`check_nearest`] | what given centroids say about points |
//! | [`summarize`], [`score`] | sizes, spread and representatives of clusters; silhouette and Davies–Bouldin |
//! | [`normalize`], [`normalize_floats`] | points of one length, for spherical (cosine) clustering |
//! | [`means`], [`float`] | float means, and the true inertia of float points |
//!
//! Drivers run over an engine's holder of the points, a [`crate::engine::ClusterProblem`];
//! [`crate::scalar::Clusters`] is the reference.
//!
//! # Limits
//!
//! d up to [`MAX_DIMS`] (scores fit 32 bits), n up to 2³² − 2, k up to n. With weights, Σw·65,025·d must stay below 2⁶⁴;
//! sums of 32 bits hold Σw < 2²⁴; spherical runs hold Σw ≤ 2³³. What exceeds a limit is refused with an error
//! that names it.

mod best;
mod error;
pub mod float;
mod kmeans;
mod lloyd;
mod means;
mod minibatch;
mod online;
mod points;
mod predict;
pub(crate) mod round;
pub mod score;
mod seed;
mod sphere;
mod summary;

use best::Best;

pub use error::ClusterError;
pub use kmeans::{Kmeans, Steps, kmeans};
pub use lloyd::{Lloyd, Outcome, Stop, lloyd};
pub use means::means;
pub use minibatch::{BATCH_CAP, MAX_CAP, mini_batch};
pub use online::{Observation, Online, OnlineHead, OnlineMut, OnlineRef};
pub use points::{MAX_DIMS, Points};
pub use predict::{Nearest, check_nearest, inertia, nearest, predict, transform};
pub use seed::{Init, MAX_CANDIDATES, greedy_candidates, seed};
pub use sphere::{MAX_SPHERE_WEIGHT, Sphere, normalize, normalize_floats};
pub use summary::{Representative, Summary, summarize};

/// How a centroid follows from its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Update {
    /// The mean, rounded half away from zero.
    #[default]
    Mean,
    /// The sum, scaled to the length of the sphere.
    Sphere(Sphere),
}
