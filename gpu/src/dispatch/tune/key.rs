//! The machine that costs belong to.

use serde::{Deserialize, Serialize};
use tercet_host::measure::Machine;

/// The machine that costs were measured on. Device and driver are stored separately, because asking for them takes
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The version of this crate, because kernels change.
    pub version: String,
    /// The processor.
    pub processor: String,
    /// Its instruction sets that kernels exist for.
    pub sets: Vec<String>,
    /// Threads that share the work.
    pub threads: usize,
    /// The operating system.
    pub system: String,
}

impl Key {
    /// Returns the key of this machine.
    pub fn here() -> Self {
        let machine = Machine::here();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: machine.processor,
            sets: machine.backends.into_iter().map(str::to_owned).collect(),
            threads: machine.threads,
            system: format!("{} on {}", machine.system, machine.architecture),
        }
    }

    /// Describes the difference from `here` in words; `None` if there is none.
    pub fn difference(&self, here: &Self) -> Option<String> {
        let threads = |key: &Self| key.threads.to_string();
        let sets = |key: &Self| key.sets.join(", ");
        let pairs = [
            ("tercet", self.version.clone(), here.version.clone()),
            ("system", self.system.clone(), here.system.clone()),
            ("processor", self.processor.clone(), here.processor.clone()),
            ("instruction sets", sets(self), sets(here)),
            ("threads", threads(self), threads(here)),
        ];
        let other = pairs.into_iter().find(|(_, there, here)| there != here);
        other.map(|(what, there, here)| format!("{what}: {there} there, {here} here"))
    }
}
