//! The contenders that run an operation.

use std::fmt;

use crate::parallel::Threads;
use crate::simd::Backend;

/// An engine, its backend and its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contender {
    /// [`tercet_core::scalar::Scalar`] on one thread.
    Scalar,
    /// [`Threads`] with a backend on a pool of so many threads.
    Threads {
        /// The instruction set.
        backend: Backend,
        /// The threads, at least 1.
        threads: usize,
    },
}

impl Contender {
    /// Returns the number of threads.
    pub const fn threads(&self) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Threads { threads, .. } => *threads,
        }
    }

    /// Returns the instruction set; [`Backend::SCALAR`] for [`Contender::Scalar`].
    pub const fn backend(&self) -> Backend {
        match self {
            Self::Scalar => Backend::SCALAR,
            Self::Threads { backend, .. } => *backend,
        }
    }

    /// Returns `scalar` or `threads`.
    pub const fn engine(&self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Threads { .. } => "threads",
        }
    }

    /// Returns the engine of threads; `None` for [`Contender::Scalar`].
    pub(super) fn engine_of_threads(self) -> Option<Threads> {
        match self {
            Self::Scalar => None,
            Self::Threads { backend, .. } => Some(Threads::default().with_backend(backend)),
        }
    }
}

/// `scalar`, or backend and threads: `avx2 × 4`. The engine of threads without an instruction set is `threads × 4`.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backend = self.backend().isa().name();
        f.pad(&name(self.engine(), backend, self.threads()))
    }
}

/// Replaces the instruction set of contenders that are not our engines.
pub(super) const GUEST: &str = "guest";

/// Returns the name of a contender from its engine, its instruction set and its threads.
pub(super) fn name(engine: &str, backend: &str, threads: usize) -> String {
    match (engine, backend) {
        ("scalar", _) | (_, GUEST) => engine.to_owned(),
        // A device.
        _ if engine == backend => engine.to_owned(),
        (_, "scalar") => format!("{engine} × {threads}"),
        _ => format!("{backend} × {threads}"),
    }
}

/// Evaluates an expression with the contender's engine as `$engine`.
macro_rules! with_engine {
    ($by:expr, $engine:ident => $body:expr) => {
        match $crate::measure::contender::Contender::engine_of_threads($by) {
            None => {
                let mut $engine = tercet_core::scalar::Scalar;
                $body
            }
            Some(mut $engine) => $body,
        }
    };
}
pub(super) use with_engine;
