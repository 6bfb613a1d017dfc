//! The instruction set that the engines use.

use std::ffi::OsString;
use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

use super::Isa;
use super::cluster::Cluster;
use super::peak::Peak;
use super::search::Search;
use super::sets::Running;
use super::stream::Stream;
use super::taken::take;

/// An instruction set that was detected on this machine.
///
/// A value can only come from detection, so kernels rely on it. No bit depends on it, only the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backend(Isa);

/// The backend of the process, once it was requested.
static CHOSEN: OnceLock<Result<Backend, BackendError>> = OnceLock::new();

/// Values of `TERCET_BACKEND` that choose between engines and name no set.
const UNNAMED: [&str; 2] = ["auto", "cuda"];

/// Why there is no such backend.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// This machine does not support the set.
    #[error("{isa} does not run on this machine; {}", available())]
    Unavailable {
        /// The set.
        isa: Isa,
    },
    /// Another backend has already done work.
    #[error("{isa} is chosen too late: {used} is already in use")]
    Late {
        /// The requested set.
        isa: Isa,
        /// The set in use.
        used: Isa,
    },
    /// `TERCET_BACKEND` is not the name of a set.
    #[error("TERCET_BACKEND: {name} is not an instruction set; {}", available())]
    Unknown {
        /// Its value.
        name: String,
    },
}

impl Backend {
    /// The reference engine's code, which runs everywhere.
    pub const SCALAR: Self = Self(Isa::Scalar);

    /// Returns the backend of a set.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`].
    pub fn new(isa: Isa) -> Result<Self, BackendError> {
        let there = isa.is_available().then_some(Self(isa));
        there.ok_or(BackendError::Unavailable { isa })
    }

    /// Iterates over the backends of this machine, the best last.
    pub fn all() -> impl Iterator<Item = Self> {
        Isa::ALL.into_iter().filter_map(|isa| Self::new(isa).ok())
    }

    /// Returns the best backend of this machine.
    pub fn best() -> Self {
        static BEST: OnceLock<Backend> = OnceLock::new();
        *BEST.get_or_init(|| Self::all().last().unwrap_or(Self::SCALAR))
    }

    /// Returns the backend that `TERCET_BACKEND` names (one of [`Isa::name`]), or the best one if it is not set, empty,
    /// `auto` or `cuda`. The variable is read once.
    ///
    /// # Errors
    /// [`BackendError::Unknown`], [`BackendError::Unavailable`].
    pub fn chosen() -> Result<Self, BackendError> {
        CHOSEN
            .get_or_init(|| Self::named(std::env::var_os("TERCET_BACKEND")))
            .clone()
    }

    /// Makes this the backend that [`Backend::chosen`] and [`Backend::default`] return in this process, whatever
    /// `TERCET_BACKEND` says. Call it before either of them is used, and so before any work.
    ///
    /// # Errors
    /// [`BackendError::Late`].
    pub fn choose(self) -> Result<(), BackendError> {
        let used = CHOSEN.get_or_init(|| Ok(self)).clone();
        match used.unwrap_or_else(|_| Self::best()) {
            used if used == self => Ok(()),
            used => Err(BackendError::Late {
                isa: self.isa(),
                used: used.isa(),
            }),
        }
    }

    fn named(name: Option<OsString>) -> Result<Self, BackendError> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(Self::best());
        };
        let name = name.to_string_lossy();
        match Isa::from_name(&name) {
            Some(isa) => Self::new(isa),
            None if UNNAMED.iter().any(|other| name.eq_ignore_ascii_case(other)) => {
                Ok(Self::best())
            }
            None => Err(BackendError::Unknown {
                name: name.into_owned(),
            }),
        }
    }

    /// Returns its instruction set.
    pub const fn isa(self) -> Isa {
        self.0
    }

    /// Returns the kernels of its set, and counts the use.
    pub(super) fn kernels(self) -> Running {
        take(self.0);
        Running(self.0)
    }

    /// Returns the kernels of clustering.
    pub(crate) fn cluster(self) -> &'static Cluster {
        self.kernels().cluster()
    }

    /// Returns the kernels of integer search.
    pub(crate) fn search(self) -> &'static Search {
        self.kernels().search()
    }

    /// Returns the loops that measure arithmetic.
    pub(crate) fn peak(self) -> &'static Peak {
        Running(self.0).peak()
    }

    /// Returns the loops that measure memory.
    pub(crate) fn stream(self) -> &'static Stream {
        Running(self.0).stream()
    }
}

/// [`Backend::chosen`], or [`Backend::best`] if that is an error.
impl Default for Backend {
    fn default() -> Self {
        Self::chosen().unwrap_or_else(|_| Self::best())
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.isa().fmt(f)
    }
}

/// Lists the available names in words.
fn available() -> String {
    let names: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
    format!("this machine has {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_that_comes_late_is_refused_unless_it_changes_nothing() {
        let used = Backend::default();
        for backend in Backend::all() {
            let chosen = backend.choose();
            let late = BackendError::Late {
                isa: backend.isa(),
                used: used.isa(),
            };
            assert_eq!(chosen, if backend == used { Ok(()) } else { Err(late) });
        }
        assert_eq!(Backend::default(), used);
    }

    #[test]
    fn a_name_is_a_set_of_this_machine_or_an_error_that_lists_them() {
        let named = |name: &str| Backend::named(Some(name.into()));
        assert_eq!(named("Scalar"), Ok(Backend::SCALAR));
        for best in ["", "auto", "CUDA"] {
            assert_eq!(named(best), Ok(Backend::best()), "{best}");
        }
        assert_eq!(Backend::named(None), Ok(Backend::best()));
        let error = named("sse9").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "TERCET_BACKEND: sse9 is not an instruction set; this machine has scalar"
            ),
            "{error}"
        );
        for isa in Isa::ALL {
            match named(isa.name()) {
                Ok(backend) => assert_eq!(backend.isa(), isa),
                Err(error) => assert_eq!(error, BackendError::Unavailable { isa }),
            }
        }
    }
}
