//! Work that an engine and the processor's threads share.

use std::fmt;

use super::{DoneBy, EngineError, FlowEngine, no_room};
use crate::Error;
use crate::parallel::Threads;
use crate::simd::Backend;

/// A working engine, and the processor's threads, which do the work that it has no room or no step for. Records which
/// engine did what, and why.
pub(crate) struct WithFallback<'e, E> {
    pub(crate) engine: &'e mut E,
    by_engine: bool,
    by_processor: bool,
    note: Option<String>,
}

impl<'e, E: FlowEngine> WithFallback<'e, E> {
    pub(crate) fn new(engine: &'e mut E) -> Self {
        Self {
            engine,
            by_engine: false,
            by_processor: false,
            note: None,
        }
    }

    /// Returns the engine's result; `None` if it has no room and the processor must do the work.
    pub(crate) fn settle<T>(
        &mut self,
        done: Result<T, EngineError>,
        refuse: impl FnOnce(EngineError) -> Error,
    ) -> Result<Option<T>, Error> {
        match done {
            Ok(done) => {
                self.by_engine = true;
                Ok(Some(done))
            }
            Err(EngineError::NoRoom(reason)) => {
                self.by_processor = true;
                let name = self.engine.name();
                self.note.get_or_insert_with(|| no_room(&name, &reason));
                Ok(None)
            }
            Err(EngineError::Failed(source)) => Err(Error::Engine {
                engine: self.engine.name(),
                source,
            }),
            Err(fault) => Err(refuse(fault)),
        }
    }

    /// Returns the result of a step on the engine, or, if it had no room, that of the processor's threads.
    pub(crate) fn or_threads<T>(
        &mut self,
        done: Result<T, impl Into<EngineError>>,
        threads: impl FnOnce(&mut Threads) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let (done, by) = DoneBy::or_threads(self.engine.name(), done, threads)?;
        match by.note {
            None => self.by_engine = true,
            Some(note) => {
                self.by_processor = true;
                self.note.get_or_insert(note);
            }
        }
        Ok(done)
    }

    /// Converts to the error of a flow: the engine's own error with its name, and a refusal through `refuse`.
    pub(crate) fn error(
        &self,
        fault: EngineError,
        refuse: impl FnOnce(&dyn fmt::Display) -> Error,
    ) -> Error {
        fault.of_flow(self.engine.name(), refuse)
    }

    /// Records that the processor does work that is no step of the engine.
    pub(crate) const fn by_processor(&mut self) {
        self.by_processor = true;
    }

    /// Returns the names of the engines that worked since the last call; empty if none did.
    pub(crate) fn worked(&mut self) -> String {
        let names = [
            (self.by_engine, self.engine.name()),
            (self.by_processor, Backend::default().to_string()),
        ];
        (self.by_engine, self.by_processor) = (false, false);
        let names = names.into_iter().filter(|(worked, _)| *worked);
        names.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    }

    /// As [`WithFallback::worked`], but with the processor's name if none did: it does the work beside restoring.
    pub(crate) fn restored(&mut self) -> String {
        match self.worked() {
            names if names.is_empty() => Backend::default().to_string(),
            names => names,
        }
    }

    /// Returns the engines that worked, or the engine if there was nothing to do, and why it was not the only one.
    pub(crate) fn by(mut self) -> DoneBy {
        let engine = match self.worked() {
            names if names.is_empty() => self.engine.name(),
            names => names,
        };
        DoneBy {
            engine,
            note: self.note,
        }
    }

    /// Returns why the processor did work of the engine, if it did.
    pub(crate) fn note(&self) -> Option<String> {
        self.note.clone()
    }
}
