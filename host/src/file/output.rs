//! Output that is complete or does not exist: a temporary file in the output's folder, renamed at the end.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::live::Temporary;
use crate::Error;

/// A file being written. If dropped before [`Output::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    temp: Temporary,
    /// Position of the file's cursor.
    position: u64,
    length: u64,
    overwrite: bool,
}

impl Output {
    /// Starts the output `path`, made from `inputs`.
    ///
    /// # Errors
    /// [`Error::OutputIsInput`] if `path` and an input are one file, also through links; [`Error::OutputExists`] if it
    /// exists and `overwrite` is false; [`Error::Io`] if no new file can be created in the folder.
    pub fn create<'a>(
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Path>,
        overwrite: bool,
    ) -> Result<Self, Error> {
        if inputs.into_iter().any(|input| same_file(path, input)) {
            return Err(Error::OutputIsInput {
                path: path.to_path_buf(),
            });
        }
        match path.metadata() {
            // Renaming over a device or a folder would replace it.
            Ok(metadata) if !metadata.is_file() => {
                return Err(Error::unsupported(path, "the output is not a regular file"));
            }
            _ if path.symlink_metadata().is_ok() && !overwrite => {
                return Err(Error::OutputExists {
                    path: path.to_path_buf(),
                });
            }
            _ => {}
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let temp = Temporary::create(folder).map_err(Error::io(path, "create"))?;
        Ok(Self {
            path: path.to_path_buf(),
            temp,
            position: 0,
            length: 0,
            overwrite,
        })
    }

    /// Returns the final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends bytes to the end.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_at(self.length, bytes)
    }

    /// Writes at an offset; gaps read as zeros.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let file = self.temp.file();
        let result = if offset == self.position {
            Ok(offset)
        } else {
            file.seek(SeekFrom::Start(offset))
        };
        result
            .and_then(|_| file.write_all(bytes))
            .map_err(Error::io(&self.path, "write"))?;
        self.position = offset + bytes.len() as u64;
        self.length = self.length.max(self.position);
        Ok(())
    }

    /// Flushes to the disk, gives the file its name, and returns its size.
    pub fn finish(self) -> Result<u64, Error> {
        let Self {
            path,
            mut temp,
            length,
            overwrite,
            ..
        } = self;
        // Before the rename: otherwise a power failure could leave an empty file with this name.
        temp.file().sync_all().map_err(Error::io(&path, "write"))?;
        match temp.persist(&path, overwrite) {
            Ok(()) => Ok(length),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Error::OutputExists { path })
            }
            Err(e) => Err(Error::io(&path, "rename into place")(e)),
        }
    }
}

/// True if both paths name one file: by name, through symbolic links, or (on Unix) hard links.
fn same_file(a: &Path, b: &Path) -> bool {
    let (Ok(full_a), Ok(full_b)) = (a.canonicalize(), b.canonicalize()) else {
        // One does not exist, so they differ.
        return false;
    };
    full_a == full_b || same_node(&full_a, &full_b)
}

#[cfg(unix)]
fn same_node(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}

/// Stable Rust has no file index on other systems. A second hard link is not detected there, but a mapped file cannot
/// be replaced there anyway.
#[cfg(not(unix))]
fn same_node(_: &Path, _: &Path) -> bool {
    false
}
