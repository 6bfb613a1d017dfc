//! The dispatcher's notices, one line each, and its errors.

use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;
use tercet_core::engine::Refused;
use tercet_host::engine::EngineError;

use super::{Engine, Operation};

/// An event that a program may want to log. Work continues after each of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notice {
    /// There is no working device; reported once.
    NoDevice {
        /// The reason.
        reason: String,
    },
    /// A device was opened.
    Opened {
        /// Device and driver.
        device: String,
    },
    /// An engine failed at a call, which another then finished with the same bits.
    Failed {
        /// The operation.
        operation: Operation,
        /// The engine that failed.
        engine: Engine,
        /// The reason.
        reason: String,
        /// The engine that continues.
        next: Engine,
        /// True if the device failed for the third time in a row or is lost: it is no longer used from now on.
        given_up: bool,
    },
    /// The device failed in this way, and no other engine could do the call, because its data is on the device.
    GivenUp {
        /// The last failure.
        reason: String,
    },
    /// Some or all of the measured costs are not used.
    Tuning {
        /// The reason.
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
                write!(
                    f,
                    "{operation}: {engine} failed, so {next} does it: {reason}"
                )?;
                match given_up {
                    true => f.write_str("; the GPU is not used from now on"),
                    false => Ok(()),
                }
            }
            Self::GivenUp { reason } => write!(f, "the GPU is not used from now on: {reason}"),
            Self::Tuning { reason } => write!(f, "tuning: {reason}"),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// Every engine refuses the input: the caller's error.
    #[error(transparent)]
    Refused(Refused),
    /// The requested engine is not available.
    #[error("{engine} is not available: {reason}")]
    Unavailable {
        /// The engine.
        engine: Engine,
        /// The reason.
        reason: String,
    },
    /// The requested engine failed.
    #[error("{engine} failed: {source}")]
    Engine {
        /// The engine.
        engine: Engine,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Under [`super::Profile::Edge`]: the call needs more scratch than is allowed.
    #[error("{operation} needs {needed} bytes of scratch, but the profile has {available}")]
    Scratch {
        /// The operation.
        operation: Operation,
        /// Bytes needed.
        needed: usize,
        /// Bytes allowed.
        available: usize,
    },
}

tercet_core::from_refusals!(DispatchError);

/// The result of an engine that did not do its work.
pub(super) enum Failure {
    /// The caller's error: every engine refuses the input.
    Refused(Refused),
    /// Another engine may do it.
    Engine {
        source: Box<dyn StdError + Send + Sync>,
        /// True if the engine is still sound: it only had no room.
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
            // An error of a later version: treat it as the engine's, so that another engine tries.
            other => Self::Engine {
                source: other.into(),
                sound: false,
            },
        }
    }
}
