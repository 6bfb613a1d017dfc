//! The file of measured costs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Key;
use crate::dispatch::{Costs, TuningFile};

/// A larger file is not one of ours.
const LARGEST: u64 = 16 << 20;

/// Measured costs and the machine that they belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The machine.
    pub key: Key,
    /// Device and driver, if one was measured.
    pub device: Option<String>,
    /// The day of the measurement, as `2026-01-31`.
    pub made: String,
    /// The costs.
    pub costs: Costs,
}

/// Why the costs of a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// The file cannot be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The content is not that of a tuning file.
    #[error("{}: not a tuning file: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The file belongs to another machine.
    #[error("{}: from another machine: {difference}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
    /// There is no directory for the file.
    #[error("no cache directory is known: set TERCET_TUNING to a file")]
    Nowhere,
}

/// Returns the path of the file, whether or not it exists; `None` if no file is wanted or no directory is known.
pub fn path(file: &TuningFile) -> Option<PathBuf> {
    match file {
        TuningFile::Off => None,
        TuningFile::At(path) => Some(path.clone()),
        TuningFile::Default => in_cache(|name| env::var_os(name)),
    }
}

fn in_cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The specification says that a path that is not absolute must be ignored.
    let folder = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let cache = folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .or_else(|| folder("LOCALAPPDATA"))?;
    Some(cache.join("tercet").join("tuning.json"))
}

impl Tuning {
    /// Reads a file of this machine; returns `None` if there is no file.
    ///
    /// # Errors
    /// [`TuningError::Io`], [`TuningError::Broken`], [`TuningError::Foreign`].
    pub fn read(path: &Path) -> Result<Option<Self>, TuningError> {
        Self::read_for(path, &Key::here())
    }

    /// As [`Tuning::read`], for another machine than this one.
    ///
    /// # Errors
    /// Those of [`Tuning::read`].
    pub fn read_for(path: &Path, key: &Key) -> Result<Option<Self>, TuningError> {
        let failed = |source| TuningError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        };
        let broken = |reason: String| TuningError::Broken {
            path: path.to_owned(),
            reason,
        };
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            Ok(data) if data.len() > LARGEST => {
                return Err(broken(format!("it has {} bytes", data.len())));
            }
            Ok(_) => {}
        }
        let text = fs::read(path).map_err(failed)?;
        // Read the machine first: the rest of a file of another version need not be understood.
        let of: Of = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        if let Some(difference) = of.key.difference(key) {
            return Err(TuningError::Foreign {
                path: path.to_owned(),
                difference,
            });
        }
        let tuning = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        Ok(Some(tuning))
    }

    /// Writes the file completely or not at all: first beside its place, then renamed. Creates missing directories.
    ///
    /// # Errors
    /// [`TuningError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), TuningError> {
        let failed = |action| {
            move |source| TuningError::Io {
                path: path.to_owned(),
                action,
                source,
            }
        };
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| failed("write")(io::Error::other(error)))?;
        text.push('\n');
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
        written.map_err(|source| {
            // The partial file is useless. A failure to remove it needs no report of its own: the earlier error says
            // enough.
            let _ = fs::remove_file(&beside);
            failed("write")(source)
        })
    }
}

/// The part that is read first.
#[derive(Deserialize)]
struct Of {
    key: Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning() -> Tuning {
        Tuning {
            key: Key::here(),
            device: None,
            made: "2026-01-31".into(),
            costs: Costs::builtin(4),
        }
    }

    #[test]
    fn the_file_is_in_the_cache_directory() {
        let at = |name: &'static str, value: &'static str| {
            in_cache(move |asked| (asked == name).then(|| value.into()))
        };
        let file = |folder: &str| Some(Path::new(folder).join("tercet").join("tuning.json"));
        assert_eq!(at("XDG_CACHE_HOME", "/c"), file("/c"));
        assert_eq!(at("HOME", "/home/a"), file("/home/a/.cache"));
        assert_eq!(at("XDG_CACHE_HOME", "relative"), None);
        assert_eq!(path(&TuningFile::Off), None);
        assert_eq!(
            path(&TuningFile::At("t.json".into())),
            Some("t.json".into())
        );
    }

    #[test]
    fn what_is_written_is_read_and_replaces_what_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("er").join("tuning.json");
        assert!(Tuning::read(&path).unwrap().is_none());
        let mut tuning = tuning();
        for made in ["2026-01-30", "2026-01-31"] {
            tuning.made = made.into();
            tuning.write(&path).unwrap();
            let read = Tuning::read(&path).unwrap().unwrap();
            assert_eq!((&read.key, read.made.as_str()), (&tuning.key, made));
            assert_eq!(read.costs.iter().count(), tuning.costs.iter().count());
        }
        // No other file remains beside it.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_another_machine_is_refused_with_a_word_on_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        tuning().write(&path).unwrap();
        let key = Key::here();
        let others = [
            (
                Key {
                    threads: key.threads + 3,
                    ..key.clone()
                },
                "threads: ",
            ),
            (
                Key {
                    processor: "Z80".into(),
                    ..key.clone()
                },
                "processor: ",
            ),
            (
                Key {
                    version: "0.0.1".into(),
                    ..key.clone()
                },
                "tercet: ",
            ),
            (
                Key {
                    sets: vec!["mmx".into()],
                    ..key
                },
                "instruction sets: ",
            ),
        ];
        for (other, word) in others {
            let error = Tuning::read_for(&path, &other).unwrap_err();
            assert!(matches!(error, TuningError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn broken_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        let whole = serde_json::to_string(&tuning()).unwrap();
        let texts = [
            String::new(),
            "{}".into(),
            whole[..whole.len() / 2].into(),
            whole.replace("\"search\"", "\"seek\""),
            whole.replace("\"launch\":", "\"launch\":-"),
        ];
        for text in texts {
            fs::write(&path, &text).unwrap();
            let error = Tuning::read(&path).unwrap_err();
            assert!(matches!(error, TuningError::Broken { .. }), "{error}");
        }
        assert!(Tuning::read(folder.path()).is_err());
    }
}
