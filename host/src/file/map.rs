//! A file mapped for reading.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::Error;

/// A file's bytes, paged in as they are touched.
#[derive(Debug)]
pub(crate) struct Map {
    path: PathBuf,
    /// `None` for an empty file, which some systems refuse to map.
    map: Option<Mmap>,
}

impl Map {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let metadata = file.metadata().map_err(Error::io(path, "open"))?;
        if !metadata.is_file() {
            return Err(Error::UnknownFile {
                path: path.to_path_buf(),
                reason: if metadata.is_dir() {
                    "it is a folder; name the file in it"
                } else {
                    "it is not a regular file"
                },
            });
        }
        let map = if metadata.len() == 0 {
            None
        } else {
            Some(map(&file).map_err(Error::io(path, "map"))?)
        };
        Ok(Self {
            path: path.to_path_buf(),
            map,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this process; nothing here writes to its file, since outputs
    // are new files and an output that is an input is refused. Should another process write to the file, reads
    // may see old or new bytes: every byte pattern is a valid `u8`, headers are copied out while they are
    // parsed, and offsets are checked against the map's length, which does not change. Cutting the file short
    // makes a read fault (SIGBUS), which ends the process; `Model::open` says so.
    unsafe { Mmap::map(file) }
}
