//! Laws of clustering, against plain 64-bit arithmetic.

mod nearest;
mod online;
mod refusals;
mod scores;
mod seeding;
mod spheres;
mod steps;
mod support;
mod weights;
