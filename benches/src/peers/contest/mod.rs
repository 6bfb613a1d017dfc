//! Tercet and its peers, timed in turns on the same files.
//!
//! An [`Event`] makes a [`Case`] when its turn comes. Before anything is timed each [`Rival`]'s answer is checked by the case's
//! [`Work`], which is Tercet's side of it: same codes, same bytes, same hits, or as near as the rule of the case says.

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
pub trait Work: Send {
    /// Does it once, and gives the seconds it took. `phase` counts the lengths of [`Case::steps`].
    fn run(&mut self, phase: usize) -> f64;
}

/// Tercet's side of a case.
pub trait Subject: Work {
    /// Whether a peer did the same: in words what agrees, or what does not. The last [`Work::run`] was of the last phase.
    ///
    /// # Errors
    /// What is not the same.
    fn check(&mut self, answer: &Answer) -> Result<String, String>;
}

/// A peer that runs in this process.
pub trait Native: Work {
    /// What the last run found.
    fn answer(&self) -> Answer;
}

/// Someone beside Tercet.
pub enum Rival {
    /// A peer in a process of its own.
    Process {
        /// How the table calls it.
        label: &'static str,
        /// Which peer.
        module: Module,
        /// Which of the peer's work.
        what: &'static str,
    },
    /// One in this process, in a rayon pool of the threads that are timed.
    Native {
        /// How the table calls it.
        label: &'static str,
        /// The peer.
        work: Box<dyn Native>,
    },
    /// No peer: something in this process that the work cannot be done in less time than, such as moving its bytes.
    Bound {
        /// How the table calls it.
        label: &'static str,
        /// It.
        work: Box<dyn Work>,
    },
}

impl Rival {
    /// A module of Python's.
    const fn python(label: &'static str, module: &'static str, what: &'static str) -> Self {
        let module = Module::Python(module);
        Self::Process {
            label,
            module,
            what,
        }
    }

    /// A peer of Rust's.
    const fn rust(label: &'static str, peer: &'static str, what: &'static str) -> Self {
        let module = Module::Rust(peer);
        Self::Process {
            label,
            module,
            what,
        }
    }

    /// How the table calls it.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Process { label, .. }
            | Self::Native { label, .. }
            | Self::Bound { label, .. } => label,
        }
    }
}

/// How many threads a case is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pools {
    /// One.
    One,
    /// One, and then all of the machine.
    OneAndAll,
    /// All of the machine: the work is another device's, and what the processor does beside it uses all of it.
    All,
}

/// One kind of work over one input.
pub struct Case {
    /// Such as `int8 rows of 1,024, 100M`.
    pub name: String,
    /// How many units of work a run is; in the unit of the table, a thousand million of them.
    pub work: f64,
    /// The unit: values, multiply-accumulates.
    pub unit: &'static str,
    /// Where a run's time is the difference of two lengths over the difference of their steps: the steps.
    pub steps: Option<[u32; 2]>,
    /// On how many threads.
    pub pools: Pools,
    /// What the peers read.
    pub inputs: Inputs,
    /// What else they are told.
    pub options: Value,
    /// Tercet.
    pub tercet: Box<dyn Subject>,
    /// Its peers.
    pub rivals: Vec<Rival>,
}

/// Makes a [`Case`], with the folder that its inputs are written to.
pub type Make = Box<dyn FnOnce(&Path) -> io::Result<Case>>;

/// A case to come: [`Case`]s hold hundreds of megabytes.
pub struct Event {
    /// The case's name.
    pub name: String,
    /// Writes its inputs to a folder and makes it.
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

/// Every event; `quick` ones are of a sixth of the values, and less than a second each. `embeddings` is a safetensors file.
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

/// Whether sums are Tercet's: how far apart the farthest are, over the largest.
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
