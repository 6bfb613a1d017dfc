//! Laws of clustering, against plain 64-bit arithmetic.

#[path = "cluster/nearest.rs"]
mod nearest;
#[path = "cluster/online.rs"]
mod online;
#[path = "cluster/refusals.rs"]
mod refusals;
#[path = "cluster/scores.rs"]
mod scores;
#[path = "cluster/seeding.rs"]
mod seeding;
#[path = "cluster/spheres.rs"]
mod spheres;
#[path = "cluster/steps.rs"]
mod steps;
#[path = "cluster/support.rs"]
mod support;
#[path = "cluster/weights.rs"]
mod weights;
