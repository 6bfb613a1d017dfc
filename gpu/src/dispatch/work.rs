//! A piece of work that any engine can do.

use tercet_host::engine::Fault;

use super::Job;
use super::engine::Able;

/// What [`super::Dispatcher::run`] does: written once, for whatever engine is chosen.
pub trait Work {
    /// What comes of it, beside what it writes.
    type Done;

    /// How much it is.
    fn job(&self) -> Job;

    /// Bytes of scratch that the scalar engine needs for it, beside input and output.
    fn scratch(&self) -> usize {
        0
    }

    /// Does it, from the start: an engine that failed may have left anything in the outputs.
    ///
    /// # Errors
    /// What every engine refuses; [`Fault::NoRoom`] and [`Fault::Engine`] of the engine itself.
    fn run<E: Able>(&mut self, engine: &mut E) -> Result<Self::Done, Fault>;
}
