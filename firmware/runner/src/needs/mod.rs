//! Looks for the needs of a run on the machine, and reports how to get missing parts.
//!
//! Only parts without which the run would surely fail are called missing. If the environment or a configuration of
//! cargo changes how programs are built, cargo must judge.

mod compiler;
mod emulator;
mod says;

use std::path::Path;

use compiler::{Library, MissingPart};

/// A search for the needs of a run, with those that were not found.
#[derive(Debug)]
pub struct Search<'a> {
    firmware: &'a Path,
    libraries: Vec<Library>,
    others: Vec<Lack>,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Its name, and the place where it was looked for.
    pub what: String,
    /// Instructions to get it.
    pub how: String,
}

impl<'a> Search<'a> {
    /// Starts a search; `firmware` is the folder that cargo builds in.
    pub fn new(firmware: &'a Path) -> Self {
        Self {
            firmware,
            libraries: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Looks for the needs of building for a target, its library and its linker. `config` is a configuration that
    /// cargo gets besides its own. Returns true if nothing is missing.
    pub fn target(&mut self, target: &str, config: &Path) -> bool {
        let missing = compiler::missing(self.firmware, target, config);
        let complete = missing.is_empty();
        for part in missing {
            match part {
                MissingPart::Library(library) if !self.libraries.contains(&library) => {
                    self.libraries.push(library);
                }
                MissingPart::Library(_) => {}
                MissingPart::Other(lack) => self.other(lack),
            }
        }
        complete
    }

    /// Looks for an emulator. Returns true if it is there.
    pub fn emulator(&mut self, program: &str) -> bool {
        let lack = emulator::lack(program);
        let there = lack.is_none();
        lack.into_iter().for_each(|lack| self.other(lack));
        there
    }

    /// Returns what is missing. Libraries that one command adds are one item.
    pub fn missing(&self) -> Vec<Lack> {
        let mut missing = Vec::new();
        let mut rest: Vec<&Library> = self.libraries.iter().collect();
        while let Some(&first) = rest.first() {
            let (these, others): (Vec<&Library>, _) =
                rest.into_iter().partition(|it| it.rust == first.rust);
            rest = others;
            let targets: Vec<&str> = these.iter().map(|it| &*it.target).collect();
            missing.push(first.rust.lack(&targets));
        }
        missing.extend_from_slice(&self.others);
        missing
    }

    /// Returns `Ok` if nothing is missing.
    ///
    /// # Errors
    /// Everything that is missing, and how to get it.
    pub fn end(&self) -> Result<(), String> {
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let lines = missing
            .iter()
            .map(|it| format!("\n  {}\n      {}", it.what, it.how));
        let lines: String = lines.collect();
        Err(format!(
            "nothing was built or run, since this is missing:{lines}"
        ))
    }

    fn other(&mut self, lack: Lack) {
        if !self.others.contains(&lack) {
            self.others.push(lack);
        }
    }
}
