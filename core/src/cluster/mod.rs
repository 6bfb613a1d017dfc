//! Clustering of int8 points in exact integers: the same labels and centroids on every machine.
//!
//! Points are int8 vectors, and so are centroids. A centroid is the mean of a cluster's members: an exact integer sum
//! over a count, rounded once. Scores and distances are exact integers, ties go to the lowest index, and draws come
//! from one generator. So the result does not depend on threads, lanes, the order of sums or the machine. A rounded
//! mean is the best integer centroid, so Lloyd's loop never raises the inertia.
//!
//! | | |
//! |---|---|
//! | [`kmeans`] | a complete run: seeding, Lloyd's loop or mini-batches, restarts |
//! | [`seed()`], [`lloyd()`], [`mini_batch`] | its parts |
//! | [`Online`], [`OnlineMut`] | one point at a time, for streams on small machines; in arrays or slices |
//! | [`nearest`], [`predict`], [`transform`], [`inertia`], [`check_nearest`] | labels, distances and inertia of points for given centroids |
//! | [`summarize`], [`score`] | sizes, spread and representatives of clusters; silhouette and Davies–Bouldin |
//! | [`normalize`], [`normalize_floats`] | points of one length, for spherical (cosine) clustering |
//! | [`means`], [`float`] | float means, and the true inertia of float points |
//!
//! Drivers run over a [`crate::engine::ClusterProblem`], in which an engine holds the points.
//! [`crate::scalar::Clusters`] is the reference.
//!
//! # Limits
//!
//! d up to [`MAX_DIMS`] (scores fit 32 bits), n up to 2³² − 2, k up to n. With weights, Σw·65,025·d must stay below
//! 2⁶⁴. Sums of 32 bits hold Σw < 2²⁴; spherical runs hold Σw ≤ 2³³. Inputs beyond a limit return an error that names
//! the limit.

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

/// Rule that computes a centroid from its members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Update {
    /// The mean, rounded half away from zero.
    #[default]
    Mean,
    /// The sum, scaled to the radius of the sphere.
    Sphere(Sphere),
}
