//! What the dispatcher has to tell, a line each, and what it refuses.

use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;
use tercet_core::engine::Refused;
use tercet_host::engine::EngineError;

use super::{Engine, Operation};

/// Something a program may want to log. Work goes on after each of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// There is no device that works; told once.
    NoDevice {
        /// Why.
        reason: String,
    },
    /// A device was opened.
    Opened {
        /// Device and driver.
        device: String,
    },
    /// An engine failed at a call, which another then finished with the same bits.
    Failed {
        /// What was asked.
        operation: Operation,
        /// Who failed.
        engine: Engine,
        /// Why.
        reason: String,
        /// Who goes on.
        next: Engine,
        /// Whether it was the device, for the third time in a row or lost for good: it is left alone from now on.
        given_up: bool,
    },
    /// The device failed so, and nobody else could do the call: its data lies there.
    GivenUp {
        /// How it failed last.
        reason: String,
    },
    /// Measured costs are not used, or not all of them.
    Tuning {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice { reason } => write!(f, "no GPU: {reason}; the CPU does all work"),
            Self::Opened { device } => write!(f, "opened {device}"),
            Self::Failed {
                operation,
                engine,
                reason,
                next,
                given_up,
            } => {
                write!(f, "{operation}: {engine} failed, {next} does it: {reason}")?;
                match given_up {
                    true => f.write_str("; the GPU is left alone from now on"),
                    false => Ok(()),
                }
            }
            Self::GivenUp { reason } => write!(f, "the GPU is left alone from now on: {reason}"),
            Self::Tuning { reason } => write!(f, "tuning: {reason}"),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// What every engine refuses: the caller's mistake.
    #[error(transparent)]
    Refused(Refused),
    /// The engine that the call was to be done by is not there.
    #[error("{engine} is not to be had: {reason}")]
    Unavailable {
        /// The engine.
        engine: Engine,
        /// Why.
        reason: String,
    },
    /// The engine that the call was to be done by failed.
    #[error("{engine} failed: {source}")]
    Engine {
        /// The engine.
        engine: Engine,
        /// How.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Under [`super::Profile::Edge`]: more scratch than there is.
    #[error("{operation} needs {needed} bytes of scratch, the profile has {available}")]
    Scratch {
        /// What was asked.
        operation: Operation,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
}

tercet_core::from_refusals!(DispatchError);

/// What came of an engine that did not do its work.
pub(super) enum Failure {
    /// The caller's mistake, which every engine refuses.
    Refused(Refused),
    /// Another engine may do it.
    Engine {
        source: Box<dyn StdError + Send + Sync>,
        /// Whether the engine is as it was: there was only no room.
        sound: bool,
    },
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(refused) => Self::Refused(refused),
            EngineError::NoRoom(source) => Self::Engine {
                source,
                sound: true,
            },
            EngineError::Failed(source) => Self::Engine {
                source,
                sound: false,
            },
            // An error of a later version: of the engine, so that another tries.
            other => Self::Engine {
                source: other.into(),
                sound: false,
            },
        }
    }
}
