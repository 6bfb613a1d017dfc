//! What a run needs of the machine, and how to get what is missing.
//!
//! Only what would surely fail is called missing: where the environment or a configuration of cargo says that building is done otherwise,
//! cargo shall judge.

mod compiler;
mod emulator;
mod says;

use std::path::Path;

use compiler::{Library, Part};

/// A search for what a run needs, and what of it was not found.
#[derive(Debug)]
pub struct Search<'a> {
    firmware: &'a Path,
    libraries: Vec<Library>,
    others: Vec<Lack>,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What it is, and where it was looked for.
    pub what: String,
    /// How to get it.
    pub how: String,
}

impl<'a> Search<'a> {
    /// A search that has found nothing missing yet; `firmware` is the folder that cargo builds in.
    pub fn new(firmware: &'a Path) -> Self {
        Self {
            firmware,
            libraries: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Looks for what building for a target needs, its library and its linker, where `config` is a configuration that cargo is told of
    /// besides its own; whether all is there.
    pub fn target(&mut self, target: &str, config: &Path) -> bool {
        let missing = compiler::missing(self.firmware, target, config);
        let complete = missing.is_empty();
        for part in missing {
            match part {
                Part::Library(library) if !self.libraries.contains(&library) => {
                    self.libraries.push(library);
                }
                Part::Library(_) => {}
                Part::Other(lack) => self.other(lack),
            }
        }
        complete
    }

    /// Looks for an emulator; whether it is there.
    pub fn emulator(&mut self, program: &str) -> bool {
        let lack = emulator::lack(program);
        let there = lack.is_none();
        lack.into_iter().for_each(|lack| self.other(lack));
        there
    }

    /// What is missing. Libraries that one command adds are one.
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

    /// Nothing, where nothing is missing.
    ///
    /// # Errors
    /// All that is missing, and how to get it.
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
