//! The demo's output folder: its own files are replaced, others are left alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tercet_host::file::output::Output;

use crate::failure::Failure;

/// Names what the demo wrote, one a line. A file in the folder that it does not name is someone else's.
const LIST: &str = "written-by-tercet-demo.txt";

/// A folder that is ready to be written to.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder and writes the list of the files to come.
    ///
    /// Fails, before anything is written, if one of `names` is there and no earlier list names it, unless `force`.
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

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let mut output = Output::create(&self.path(name), [], true)?;
        output.write(bytes)?;
        output.finish()?;
        Ok(())
    }
}
