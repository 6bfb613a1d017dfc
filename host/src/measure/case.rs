//! An operation over an input of one size.

use std::fmt;

use super::clock::Clock;
use super::contender::Contender;
use super::operation::Operation;
use super::size::words;
use super::task::Task;
use super::work::LeastWork;

/// An operation over an input of one size, ready to be run by any contender.
pub struct Case {
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// Its minimum work.
    pub work: LeastWork,
    body: Box<dyn Operation>,
}

impl Case {
    /// Runs it in the current rayon pool, which should have the contender's threads; `clock` decides how often. Returns
    /// a hash of the output of the last run, which is the same for every contender.
    pub fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        self.body.run(by, clock)
    }

    /// Returns its task for a [`super::Device`]; `None` if devices do not support it.
    pub fn task(&self) -> Option<Task<'_>> {
        self.body.task()
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:?}", self.operation, self.size, self.work)
    }
}

/// A [`Case`] that is not built yet: its input may take hundreds of MB.
pub struct Entry {
    /// Its area, with the name of a module of the crates: `quantize`, `block`, `linear`, `palette`, `cluster`,
    /// `search`, `convert`, `model`, `attention`.
    pub area: &'static str,
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// The same in numbers: values; rows and columns; rows, columns and vectors; points, coordinates and clusters;
    /// rows, coordinates and queries; weights in layers and tokens; positions and values of their keys.
    pub shape: Vec<usize>,
    make: Box<dyn Fn() -> (LeastWork, Box<dyn Operation>)>,
}

impl Entry {
    pub(super) fn new<O: Operation + 'static>(
        area: &'static str,
        operation: impl Into<String>,
        shape: &[usize],
        make: impl Fn() -> (LeastWork, O) + 'static,
    ) -> Self {
        Self {
            area,
            operation: operation.into(),
            size: words(area, shape),
            shape: shape.to_vec(),
            make: Box::new(move || {
                let (work, body) = make();
                (work, Box::new(body))
            }),
        }
    }

    /// Makes the input.
    pub fn build(&self) -> Case {
        let (work, body) = (self.make)();
        Case {
            operation: self.operation.clone(),
            size: self.size.clone(),
            work,
            body,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.operation, self.size)
    }
}
