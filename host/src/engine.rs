//! The engines that whole flows run on: clustering, search, calibration, conversions and inspection of files, and
//! integer networks.
//!
//! The first argument of a flow is its engine: [`Threads`], the processor's kernels on all threads; [`Scalar`], core's
//! loops; or an engine of another crate, such as a CUDA device. The code of the flow is the same for each, and so are
//! the bits.
//!
//! If an engine has no room for a piece of work, the threads of the processor do that piece, and the result says so
//! ([`DoneBy`]). Any other failure of the engine ends the flow with [`Error::Engine`].

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

mod fallback;
mod memory;

pub(crate) use fallback::WithFallback;
pub(crate) use memory::Memory;

/// An engine of all operations that flows use, with a name and with errors that flows understand.
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
    /// Returns its name in reports.
    fn name(&self) -> String;

    /// Returns how many threads share the steps of a model and are kept awake for a whole step; 1 if none is woken.
    fn team(&self) -> usize {
        1
    }

    /// True if it is the same as all threads of the current rayon pool with [`Backend::default`]. A flow over files
    /// then distributes tiles, each of which stays with one thread from reading to writing, instead of giving chunks to
    /// the engine.
    fn is_pool(&self) -> bool {
        false
    }
}

/// The pool, unless it has another instruction set or, as [`Threads::alone`], fewer threads.
impl FlowEngine for Threads {
    /// Returns the name of its instruction set.
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

/// Why an engine did not do its work.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// Every engine refuses the input: the caller's error.
    Refused(Refused),
    /// The engine's memory has no room for it. The engine is unchanged.
    NoRoom(Box<dyn StdError + Send + Sync>),
    /// The engine itself failed.
    Failed(Box<dyn StdError + Send + Sync>),
}

impl EngineError {
    /// Converts to the error of a flow: an engine's own error with the engine's `name`, and a refusal through `refuse`.
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

/// The engine that did the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoneBy {
    /// Its name.
    pub engine: String,
    /// Why that is not the requested engine; `None` if it is.
    pub note: Option<String>,
}

impl DoneBy {
    /// Returns the work of the engine with this name.
    pub(crate) const fn name(engine: String) -> Self {
        Self { engine, note: None }
    }

    /// Returns the result of the engine with this name, or, if it had no room, that of the processor's threads, which
    /// then do the work.
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

/// Returns why the processor did an engine's work.
pub(crate) fn no_room(name: &str, reason: &dyn fmt::Display) -> String {
    format!("{name} had no room for it: {reason}")
}
