//! Which machine costs are of.

use serde::{Deserialize, Serialize};
use tercet_host::measure::Machine;

/// The machine that costs are measured on. Device and driver stand beside it, since asking for them takes time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The version of this crate: kernels change.
    pub version: String,
    /// The processor.
    pub processor: String,
    /// Its instruction sets that kernels are written for.
    pub sets: Vec<String>,
    /// Threads that work is shared out to.
    pub threads: usize,
    /// The operating system.
    pub system: String,
}

impl Key {
    /// This machine's.
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

    /// What is another there than here, in words; none where nothing is.
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
