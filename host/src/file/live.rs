//! The temporary files of all outputs under way, so that a program that is told to stop can remove them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// The paths. Files are made, named and removed while this is locked, so that a path is here exactly while it is.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is whole after every step, also where a thread panicked.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all outputs, for a program that is about to exit.
///
/// Outputs that are begun, finished or dropped on other threads from then on wait for ever: the caller must end the
/// process. Meant for a thread that handles signals, not for a signal handler itself: it locks and allocates.
///
/// # Errors
/// None: a file that cannot be removed stays.
pub fn abandon() {
    let paths = live();
    for path in paths.iter() {
        let _ = fs::remove_file(path);
    }
    // Nothing may begin or end between here and the exit.
    std::mem::forget(paths);
}

/// A temporary file that [`abandon`] knows. It is removed when dropped.
#[derive(Debug)]
pub(crate) struct Temporary(Option<NamedTempFile>);

impl Temporary {
    pub(crate) fn create(new: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<Self> {
        let mut paths = live();
        let temp = new()?;
        paths.push(temp.path().to_owned());
        Ok(Self(Some(temp)))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        let temp = self.0.as_mut().expect("only `persist` and `drop` take it");
        temp.as_file_mut()
    }

    /// Gives the file its name, over another file of that name if `overwrite`.
    pub(crate) fn persist(mut self, path: &Path, overwrite: bool) -> io::Result<()> {
        self.close(|temp| {
            let named = if overwrite {
                temp.persist(path)
            } else {
                temp.persist_noclobber(path)
            };
            // What did not get its name is removed with the error that holds it.
            named.map(drop).map_err(|e| e.error)
        })
        .unwrap_or(Ok(()))
    }

    /// Takes the file off the list and ends it, both under the lock.
    fn close<T>(&mut self, end: impl FnOnce(NamedTempFile) -> T) -> Option<T> {
        let temp = self.0.take()?;
        let mut paths = live();
        paths.retain(|path| path != temp.path());
        Some(end(temp))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.close(drop);
    }
}
