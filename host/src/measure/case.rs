//! An operation over an input of one size.

use std::fmt;

use super::clock::Clock;
use super::contender::Contender;
use super::operation::Operation;
use super::size::words;
use super::task::Task;
use super::work::Work;

/// An operation over an input of one size, ready to be run by any contender.
pub struct Case {
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// What it must do at least.
    pub work: Work,
    body: Box<dyn Operation>,
}

impl Case {
    /// Runs it in the rayon pool it is called in, which should have the contender's threads; `clock` decides how often.
    /// Gives a hash of what the last run wrote, which is the same for every contender.
    pub fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        self.body.run(by, clock)
    }

    /// What it does, for a [`super::Device`]; `None` where devices have no words for it.
    pub fn task(&self) -> Option<Task<'_>> {
        self.body.task()
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:?}", self.operation, self.size, self.work)
    }
}

/// A [`Case`] to be: its input may take hundreds of MB.
pub struct Entry {
    /// The area it belongs to, as the crates' modules name them: `quantize`, `block`, `linear`, `palette`, `cluster`, `search`,
    /// `convert`.
    pub area: &'static str,
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// The same in numbers: values; rows and columns; rows, columns and vectors; points, coordinates and clusters;
    /// rows, coordinates and queries.
    pub shape: Vec<usize>,
    make: Box<dyn Fn() -> (Work, Box<dyn Operation>)>,
}

impl Entry {
    pub(super) fn new<O: Operation + 'static>(
        area: &'static str,
        operation: impl Into<String>,
        shape: &[usize],
        make: impl Fn() -> (Work, O) + 'static,
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
