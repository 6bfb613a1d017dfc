//! Errors of a queue and of its requests.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a queue did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no worker.
    NoWorker,
    /// The size of a batch or the capacity is 0.
    Zero {
        /// The option's name.
        name: &'static str,
    },
    /// The system could not start a thread.
    Thread {
        /// The worker's name.
        worker: String,
        /// The system's error.
        source: io::Error,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWorker => f.write_str("a queue needs at least one worker"),
            Self::Zero { name } => write!(f, "{name} of a queue must be at least 1"),
            Self::Thread { worker, source } => {
                write!(f, "cannot start a thread for worker {worker}: {source}")
            }
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Thread { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// As many requests wait as allowed: see [`super::BatchOptions::capacity`].
    Full {
        /// The allowed number.
        capacity: usize,
    },
    /// The queue was closed.
    Closed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { capacity } => {
                write!(
                    f,
                    "the queue is full: {capacity} requests wait, which is its capacity"
                )
            }
            Self::Closed => f.write_str("the queue is closed"),
        }
    }
}

/// A request that was not accepted, returned to the submitter.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<R> {
    /// The reason.
    pub reason: Reason,
    /// The request.
    pub request: R,
}

impl<R> fmt::Debug for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Display for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<R> Error for Refused<R> {}

/// Why an accepted request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchError<E> {
    /// The work refused or failed.
    Failed(Arc<E>),
    /// The work panicked, with this message.
    Panicked(Arc<str>),
    /// The work gave more or fewer answers than there were requests, so none of them could be assigned.
    Miscounted {
        /// Requests of the part that was run.
        requests: usize,
        /// Number of answers.
        answers: usize,
    },
    /// The queue was closed, without answering waiting requests, before the request's batch began.
    Closed,
}

impl<E> Clone for BatchError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::Panicked(said) => Self::Panicked(Arc::clone(said)),
            &Self::Miscounted { requests, answers } => Self::Miscounted { requests, answers },
            Self::Closed => Self::Closed,
        }
    }
}

impl<E: fmt::Display> fmt::Display for BatchError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Panicked(said) => write!(f, "a worker panicked: {said}"),
            Self::Miscounted { requests, answers } => {
                write!(f, "a worker gave {answers} answers to {requests} requests")
            }
            Self::Closed => f.write_str("the queue was closed before the request's turn"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for BatchError<E> {}
