//! The temporary files of all unfinished outputs, so that a program that is told to stop can remove them.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The paths. Files are created, named and removed under this lock, so that a path is here exactly as long as its file
/// exists.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of paths is complete after every step, even if a thread panicked.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all outputs, for a program that is about to exit.
///
/// Outputs that other threads begin, finish or drop from then on wait forever: the caller must end the process. This is
/// for a thread that handles signals, not for a signal handler itself, because it locks and allocates.
///
/// # Errors
/// None: a file that cannot be removed remains.
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
pub(crate) struct Temporary {
    file: File,
    /// `None` once the file has its name.
    path: Option<PathBuf>,
}

impl Temporary {
    /// Creates a new hidden file in a folder, with the permissions of an ordinary new file.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let mut paths = live();
        loop {
            let path = folder.join(format!(".tercet-{:016x}.part", random()));
            match options.open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
                Ok(file) => {
                    paths.push(path.clone());
                    let path = Some(path);
                    return Ok(Self { file, path });
                }
            }
        }
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name; if `overwrite`, replaces an existing file of that name.
    pub(crate) fn persist(mut self, path: &Path, overwrite: bool) -> io::Result<()> {
        self.close(|temp| {
            let named = if overwrite {
                fs::rename(temp, path)
            } else {
                rename_to_new(temp, path)
            };
            named.inspect_err(|_| remove(temp))
        })
        .unwrap_or(Ok(()))
    }

    /// Removes the file from the list and ends it, both under the lock.
    fn close<T>(&mut self, end: impl FnOnce(&Path) -> T) -> Option<T> {
        let temp = self.path.take()?;
        let mut paths = live();
        paths.retain(|path| *path != temp);
        Some(end(&temp))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.close(remove);
    }
}

/// Returns a number that differs from call to call, and from process to process.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A file that cannot be removed remains.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Renames a file, and fails if there is one with the new name.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => {
            remove(from);
            Ok(())
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(e),
        // A disk without hard links, such as FAT.
        Err(_) if to.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}
