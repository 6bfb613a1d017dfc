//! Who does the products and the quantizing of networks: an engine, and the threads of the processor where it has no room.

use crate::Error;
use crate::engine::{By, Fault, Worker};
use crate::parallel::Threads;

/// An engine that is given one step after another.
pub(super) struct Hands<'e, E> {
    pub(super) engine: &'e mut E,
    /// Whether it did a step.
    by_engine: bool,
    /// Who did a step that it had no room for, and why.
    other: Option<By>,
}

impl<'e, E: Worker> Hands<'e, E> {
    pub(super) const fn new(engine: &'e mut E) -> Self {
        Self {
            engine,
            by_engine: false,
            other: None,
        }
    }

    /// What a step by the engine gave, or, where that had no room, what the processor's threads then give.
    pub(super) fn settle<T>(
        &mut self,
        done: Result<T, impl Into<Fault>>,
        threads: impl FnOnce(&mut Threads) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (done, by) = By::or_threads(self.engine.name(), done, threads)?;
        match by.note {
            None => self.by_engine = true,
            Some(_) => _ = self.other.get_or_insert(by),
        }
        Ok(done)
    }

    /// The error of a flow: the engine's own under its name, and what all engines refuse as `refuse` tells it.
    pub(super) fn told(
        &self,
        fault: Fault,
        refuse: impl FnOnce(&dyn std::fmt::Display) -> Error,
    ) -> Error {
        fault.told(self.engine.name(), refuse)
    }

    /// The name of the engine, and why the processor did some of its work; `None` where it did none.
    pub(super) fn asked(self) -> (String, Option<String>) {
        (self.engine.name(), self.other.and_then(|by| by.note))
    }

    /// Who worked: the engine where it did all or nothing was to do, else the processor, and both where each did a part.
    pub(super) fn by(self) -> By {
        let name = self.engine.name();
        match self.other {
            None => By::name(name),
            Some(by) if !self.by_engine => by,
            Some(by) => By {
                engine: format!("{name}, {}", by.engine),
                ..by
            },
        }
    }
}
