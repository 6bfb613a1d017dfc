//! The measured operations, one file per kind.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::clock::Clock;
use super::contender::Contender;
use super::task::Task;

pub(super) mod activations;
pub(super) mod attention;
pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod compare;
pub(super) mod convert;
pub(super) mod linear;
pub(super) mod model;
pub(super) mod palette;
pub(super) mod quantize;
pub(super) mod search;

/// An operation over its input.
pub(super) trait Operation: Send + Sync {
    /// Prepares outputs, lets `clock` time one run (or the equivalent: [`super::LeastWork::steps`]), and returns a hash
    /// of the output. Runs in the pool of the contender's threads.
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64;

    /// Returns its task for a device; `None` if devices do not support it.
    fn task(&self) -> Option<Task<'_>> {
        None
    }
}

/// A hash of results, the same in every process of one build.
#[derive(Clone, Debug, Default)]
pub struct Bits(DefaultHasher);

impl Bits {
    /// Adds integers, or bytes.
    #[must_use]
    pub fn with(mut self, values: &[impl Hash]) -> Self {
        values.hash(&mut self.0);
        self
    }

    /// Adds floats as their bits.
    #[must_use]
    pub fn with_floats(mut self, values: &[f32]) -> Self {
        values
            .iter()
            .for_each(|value| self.0.write_u32(value.to_bits()));
        self
    }

    /// Returns the hash.
    pub fn finish(self) -> u64 {
        self.0.finish()
    }
}

/// Returns the result of a CPU engine for a legal input.
///
/// # Panics
/// On an error: the input is made here, so it would be a bug in the engine.
fn legal<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
