//! The files that peers read.

use crate::peers::npy::{self, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files in a folder that is deleted when this is dropped.
#[derive(Debug)]
pub struct Inputs {
    folder: PathBuf,
    files: BTreeMap<String, String>,
}

impl Inputs {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
        })
    }

    pub(super) fn put<T: Value>(
        &mut self,
        name: &str,
        values: &[T],
        shape: &[usize],
    ) -> io::Result<()> {
        let path = self.folder.join(format!("{name}.npy"));
        npy::write(&path, values, shape)?;
        self.files
            .insert(name.into(), path.to_string_lossy().into());
        Ok(())
    }

    /// Returns their paths, by name.
    pub const fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
