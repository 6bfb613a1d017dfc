//! Language models on rayon's threads: heads of rows side by side, and products of floats.

use tercet_core::engine::ModelEngine;
use tercet_core::model::ModelError;

use super::Threads;

impl ModelEngine for Threads {
    type Failure = ModelError;
}
