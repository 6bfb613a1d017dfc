//! The engines that whole flows run on: clustering, search, calibration, conversions of files, looks at them, and integer
//! networks.
//!
//! A flow takes its engine first: [`Threads`], the processor's kernels on all threads; [`Scalar`], core's loops; or one of
//! another crate's, such as a CUDA device. The flow is the same code for each, and so are the bits.
//!
//! If an engine has no room for a piece of work, the threads of the processor do that piece, and what comes back says so
//! ([`By`]). Any other failure of the engine ends the flow with [`Error::Engine`].

use std::error::Error as StdError;
use std::fmt;

use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, ModelEngine, PaletteEngine, QuantizeEngine, Refused,
    SearchEngine,
};
use tercet_core::scalar::Scalar;

use crate::Error;
use crate::parallel::Threads;
use crate::simd::Backend;

mod memory;
mod shared;

pub(crate) use memory::Memory;
pub(crate) use shared::Shared;

/// An engine of every operation that flows run on, with a name and failures that they understand.
pub trait FlowEngine:
    QuantizeEngine<Error: Into<EngineError>>
    + BlockEngine<Error: Into<EngineError>>
    + ClusterEngine<Error: Into<EngineError>>
    + SearchEngine<Error: Into<EngineError>>
    + PaletteEngine<Error: Into<EngineError>>
    + LinearEngine<Error: Into<EngineError>>
    + ModelEngine<Failure: Into<EngineError>>
    + Send
{
    /// What reports call it.
    fn name(&self) -> String;

    /// How many threads share the steps of a model, which are kept awake for all of a step; 1 where none is woken.
    fn team(&self) -> usize {
        1
    }

    /// Whether it is what all threads of the current rayon pool are with [`Backend::default`]. A flow over files then hands
    /// out tiles, each of which stays with one thread from reading to writing, and not chunks to the engine.
    fn is_pool(&self) -> bool {
        false
    }
}

/// The pool, unless it has another instruction set or, being [`Threads::alone`], fewer threads.
impl FlowEngine for Threads {
    /// Its instruction set's.
    fn name(&self) -> String {
        self.backend().to_string()
    }

    fn team(&self) -> usize {
        self.threads()
    }

    fn is_pool(&self) -> bool {
        self.backend() == Backend::default()
            && (!self.is_alone() || rayon::current_num_threads() == 1)
    }
}

/// The pool, if that is one thread with core's loops.
impl FlowEngine for Scalar {
    fn name(&self) -> String {
        "scalar".to_owned()
    }

    fn is_pool(&self) -> bool {
        Backend::default() == Backend::SCALAR && rayon::current_num_threads() == 1
    }
}

/// Why an engine did not do what it was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// What every engine refuses: the caller's mistake.
    Refused(Refused),
    /// The engine's memory has no room for it. The engine is as it was.
    NoRoom(Box<dyn StdError + Send + Sync>),
    /// The engine itself failed.
    Failed(Box<dyn StdError + Send + Sync>),
}

impl EngineError {
    /// The error of a flow: an engine's own under the engine's `name`, and what all refuse as `refuse` says it.
    pub(crate) fn of_flow(
        self,
        name: String,
        refuse: impl FnOnce(&dyn fmt::Display) -> Error,
    ) -> Error {
        match self {
            Self::Refused(refused) => refuse(&refused),
            Self::NoRoom(source) | Self::Failed(source) => Error::Engine {
                engine: name,
                source,
            },
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::NoRoom(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}

impl StdError for EngineError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Refused(refused) => refused.source(),
            Self::NoRoom(error) | Self::Failed(error) => error.source(),
        }
    }
}

tercet_core::from_refusals!(EngineError);

/// Who did the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct By {
    /// The name of the engine that did it.
    pub engine: String,
    /// Why that is not the engine that was to do it; `None` where it is.
    pub note: Option<String>,
}

impl By {
    /// The work of the engine of this name.
    pub(crate) const fn name(engine: String) -> Self {
        Self { engine, note: None }
    }

    /// What the engine of this name has done, or, where it had no room, what the processor's threads then do.
    pub(crate) fn or_threads<T>(
        name: String,
        done: Result<T, impl Into<EngineError>>,
        threads: impl FnOnce(&mut Threads) -> Result<T, EngineError>,
    ) -> Result<(T, Self), EngineError> {
        let reason = match done.map_err(Into::into) {
            Ok(done) => return Ok((done, Self::name(name))),
            Err(EngineError::NoRoom(reason)) => reason,
            Err(fault) => return Err(fault),
        };
        let mut engine = Threads::default();
        let done = threads(&mut engine)?;
        let by = Self {
            engine: engine.name(),
            note: Some(no_room(&name, &reason)),
        };
        Ok((done, by))
    }
}

/// Why an engine's work was done by the processor.
pub(crate) fn no_room(name: &str, reason: &dyn fmt::Display) -> String {
    format!("{name} had no room for it: {reason}")
}
