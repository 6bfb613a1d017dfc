//! A file mapped for reading.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::Error;

/// The bytes of a file, paged in when they are read.
#[derive(Debug)]
pub(crate) struct Map {
    path: PathBuf,
    /// `None` for an empty file, which some systems refuse to map, and for bytes in memory.
    map: Option<Mmap>,
    /// The bytes given to [`Map::made`].
    made: Vec<u8>,
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
            made: Vec::new(),
        })
    }

    /// Returns bytes in memory as a map; they were made from the file `path`.
    pub(crate) fn made(path: &Path, bytes: Vec<u8>) -> Self {
        Self {
            path: path.to_path_buf(),
            map: None,
            made: bytes,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a part of the file into memory and into the process's page table in one step, if the system can (Linux
    /// 5.14). Otherwise, and if `part` is not in the file, it does nothing, and pages are read on access.
    ///
    /// For a quarter of a gibibyte that the system already has in memory, a pass then takes 21 ms, and 31 ms with a
    /// fault for every few pages; from a disk 166 and 237 ms. Other threads compute meanwhile.
    pub(crate) fn page_in(&self, part: &[u8]) {
        #[cfg(target_os = "linux")]
        if let Some((map, start)) = self.place(part) {
            // This is a hint: an error here is reported when the bytes are read.
            let _ = map.advise_range(memmap2::Advice::PopulateRead, start, part.len());
        }
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    /// Removes a part of the file from the process's page table, so that it no longer counts as memory of the process.
    /// The system keeps as much as it has room for; on the next access the data comes from there or from the file.
    #[allow(unsafe_code)]
    pub(crate) fn release(&self, part: &[u8]) {
        #[cfg(unix)]
        if let Some((map, start)) = self.place(part) {
            // SAFETY: the map is shared with the file and nothing writes through it, so that a page that is dropped
            // holds nothing but the file's bytes, and comes back with them when it is next read, by whatever borrow:
            // nothing changes that a reference could see, as long as the file does not, for which see `map`.
            let _ = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, part.len())
            };
        }
        #[cfg(not(unix))]
        let _ = part;
    }

    /// Returns the map, and the start of a part in it; `None` for bytes elsewhere, and for none.
    #[cfg(unix)]
    fn place(&self, part: &[u8]) -> Option<(&Mmap, usize)> {
        let map = self.map.as_ref()?;
        let start = part.as_ptr().addr().checked_sub(map.as_ptr().addr())?;
        (!part.is_empty() && start + part.len() <= map.len()).then_some((map, start))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&self.made)
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this process; nothing here writes to its file, since outputs
    // are new files and an output that is an input is refused. Should another process write to the file, reads
    // may see old or new bytes: every byte pattern is a valid `u8`, headers are copied out while they are
    // parsed, and offsets are checked against the map's length, which does not change. Cutting the file short
    // makes a read fault (SIGBUS), which ends the process; `TensorFile::open` says so.
    unsafe { Mmap::map(file) }
}
