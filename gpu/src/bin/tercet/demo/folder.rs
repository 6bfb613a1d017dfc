//! The demo's output folder: its own files are replaced, others are not touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tercet_host::file::output::Output;

use crate::failure::Failure;

/// Lists the files that the demo wrote, one per line. Other files in the folder do not belong to the demo.
const LIST: &str = "written-by-tercet-demo.txt";

/// A folder that is ready for writing.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder and writes the list of the files to come.
    ///
    /// Unless `force` is set, fails before anything is written if one of `names` exists and no earlier list names it.
    pub(crate) fn prepare(path: &Path, names: &[String], force: bool) -> Result<Self, Failure> {
        let list = path.join(LIST);
        let own = match fs::read_to_string(&list) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::io(&list, "read", &error)),
        };
        for name in names {
            let file = path.join(name);
            let there = file.symlink_metadata().is_ok();
            if there && !force && !own.lines().any(|line| line == name) {
                return Err(Failure::new(format_args!(
                    "{}: exists already and was not written by `tercet demo` (--force overwrites, --out DIR goes elsewhere)",
                    file.display()
                )));
            }
        }
        fs::create_dir_all(path).map_err(|error| Failure::io(path, "make the folder", &error))?;
        let folder = Self {
            path: path.to_owned(),
        };
        folder.write(LIST, (names.join("\n") + "\n").as_bytes())?;
        Ok(folder)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file completely or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let mut output = Output::create(&self.path(name), [], true)?;
        output.write(bytes)?;
        output.finish()?;
        Ok(())
    }
}
