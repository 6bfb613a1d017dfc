//! Tercet and its peers, timed in turns on the same files.
//!
//! An [`Event`] makes a [`Case`] when its turn comes. Before timing, the case's [`Subject`], which is Tercet's side of
//! it, checks each [`Rival`]'s answer: the same codes, bytes or hits, or as near as the rule of the case says.

mod cluster;
pub mod cuda;
mod data;
mod encode;
mod inputs;
mod kernel;
mod matmat;
mod matvec;
mod measure;
mod picture;
mod quantize;
mod search;
mod sum;
mod table;

pub use inputs::Inputs;
pub use measure::{Effort, Peers, measure};
pub use picture::picture;
pub use table::{Row, json, table};

use super::process::{Answer, Module};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Tercet's side of a case, or a peer's in this process.
pub trait TimedWork: Send {
    /// Does the work once, and returns the seconds it took. `phase` is an index into the lengths of [`Case::steps`].
    fn run(&mut self, phase: usize) -> f64;
}

/// Tercet's side of a case.
pub trait Subject: TimedWork {
    /// Returns a description of the agreement if a peer did the same work. The last [`TimedWork::run`] was of the last
    /// phase.
    ///
    /// # Errors
    /// A description of the difference.
    fn check(&mut self, answer: &Answer) -> Result<String, String>;
}

/// A peer that runs in this process.
pub trait Native: TimedWork {
    /// Returns the result of the last run.
    fn answer(&self) -> Answer;
}

/// A competitor of Tercet.
pub enum Rival {
    /// A peer in a separate process.
    Process {
        /// Its name in the table.
        label: &'static str,
        /// The peer.
        module: Module,
        /// The peer's work to do.
        what: &'static str,
    },
    /// A peer in this process, in a rayon pool of the threads that are timed.
    Native {
        /// Its name in the table.
        label: &'static str,
        /// The peer.
        work: Box<dyn Native>,
    },
    /// A bound instead of a peer: an operation in this process that takes no longer than the work can, such as moving
    /// its bytes.
    Bound {
        /// Its name in the table.
        label: &'static str,
        /// The operation.
        work: Box<dyn TimedWork>,
    },
}

impl Rival {
    /// Returns a peer that is a Python module.
    const fn python(label: &'static str, module: &'static str, what: &'static str) -> Self {
        let module = Module::Python(module);
        Self::Process {
            label,
            module,
            what,
        }
    }

    /// Returns a Rust peer.
    const fn rust(label: &'static str, peer: &'static str, what: &'static str) -> Self {
        let module = Module::Rust(peer);
        Self::Process {
            label,
            module,
            what,
        }
    }

    /// Returns its name in the table.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Process { label, .. }
            | Self::Native { label, .. }
            | Self::Bound { label, .. } => label,
        }
    }
}

/// Numbers of threads that a case is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pools {
    /// One thread.
    One,
    /// One thread, and then all of the machine.
    OneAndAll,
    /// All of the machine: another device does the work, and the processor, for comparison, uses all of its threads.
    All,
}

/// One kind of work over one input.
pub struct Case {
    /// Name, such as `int8 rows of 1,024, 100M`.
    pub name: String,
    /// Units of work per run; the table counts them in thousand millions.
    pub work: f64,
    /// The unit: values, multiply-accumulates.
    pub unit: &'static str,
    /// Numbers of steps of two lengths, if the time of a run is the difference of their times divided by the
    /// difference of their steps.
    pub steps: Option<[u32; 2]>,
    /// Numbers of threads.
    pub pools: Pools,
    /// The files that the peers read.
    pub inputs: Inputs,
    /// Further options for them.
    pub options: Value,
    /// Tercet's side.
    pub tercet: Box<dyn Subject>,
    /// Its peers.
    pub rivals: Vec<Rival>,
}

/// Makes a [`Case`]; the argument is the folder for its inputs.
pub type Make = Box<dyn FnOnce(&Path) -> io::Result<Case>>;

/// A future case, because [`Case`]s take hundreds of megabytes.
pub struct Event {
    /// The case's name.
    pub name: String,
    /// Writes the inputs to a folder and makes the case.
    pub case: Make,
}

impl Event {
    fn new(
        name: impl Into<String>,
        case: impl FnOnce(&str, Inputs) -> io::Result<Case> + 'static,
    ) -> Self {
        let name = name.into();
        let of_case = name.clone();
        Self {
            name,
            case: Box::new(move |folder| case(&of_case, Inputs::new(folder)?)),
        }
    }
}

/// Returns every event; `quick` ones have about a sixth of the values, and take less than a second each. `embeddings`
/// is a safetensors file.
pub fn events(quick: bool, embeddings: Option<&Path>) -> Vec<Event> {
    let mut events = quantize::events(quick);
    events.extend(sum::events(quick));
    events.extend(encode::events(quick));
    events.extend(matvec::events(quick));
    events.extend(matmat::events(quick));
    events.extend(cluster::events(quick, embeddings));
    events.extend(search::events(quick));
    events
}

/// Checks that sums equal Tercet's: compares their largest difference, relative to the largest sum, with `limit`.
fn near(ours: &[f32], theirs: &[f32], limit: f32) -> Result<String, String> {
    if theirs.len() != ours.len() {
        return Err(format!("{} sums", theirs.len()));
    }
    let largest = ours.iter().fold(0.0f32, |most, y| most.max(y.abs()));
    let pairs = ours.iter().zip(theirs);
    let off = pairs.fold(0.0f32, |most, (ours, theirs)| {
        most.max((ours - theirs).abs() / largest)
    });
    match off {
        0.0 => Ok("same sums".into()),
        _ if off <= limit => Ok(format!("sums off by {off:.0e} of the largest")),
        _ => Err(format!("sums off by {off:.0e} of the largest")),
    }
}
