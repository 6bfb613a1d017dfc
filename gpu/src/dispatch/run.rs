//! A call from choosing to counting: the chosen engine runs it, and the next one if that fails.

use std::time::Instant;

use tercet_core::scalar::Scalar;
use tercet_host::engine::EngineError;

use super::choose::{Ranking, State};
use super::dispatcher::Dispatcher;
use super::engine::Device;
use super::metrics::Call;
use super::notice::{DispatchError, Failure, Notice};
use super::room;
use super::settings::{Profile, Verbose};
use super::{Engine, Job};
use crate::AnyEngine;

/// An engine that failed at a call, kept until the next engine is known.
struct Failed {
    engine: Engine,
    reason: String,
    /// True if this was the device, which is no longer used from now on.
    given_up: bool,
}

impl<D: Device> Dispatcher<D> {
    /// Runs a piece of work on the engine with the lowest cost for it. All other calls use this one.
    ///
    /// `work` receives the engine. If the engine fails, the next engine does the whole work again, with the same bits,
    /// so anything that the first one left in the outputs does not matter.
    ///
    /// ```
    /// use tercet_core::block::Format;
    /// use tercet_core::engine::BlockEngine;
    /// use tercet_gpu::dispatch::{Dispatcher, Job, Settings};
    ///
    /// let dispatcher = Dispatcher::new(Settings::default());
    /// let mut out = [1.0; 64];
    /// dispatcher.run(Job::decode(64, 68), |engine| {
    ///     engine.decode_blocks(Format::Q8_0, &[0; 68], &mut out)
    /// })?;
    /// assert_eq!(out, [0.0; 64]);
    /// # Ok::<(), tercet_gpu::dispatch::DispatchError>(())
    /// ```
    ///
    /// # Errors
    /// [`DispatchError::Refused`] for the caller's errors; no other engine is tried then. [`DispatchError::Scratch`]
    /// under [`Profile::Edge`]. The failure of an engine itself is returned only by a handle of [`Dispatcher::on`] for
    /// that engine.
    pub fn run<T>(
        &self,
        job: Job,
        work: impl FnMut(&mut AnyEngine<'_, D>) -> Result<T, EngineError>,
    ) -> Result<T, DispatchError> {
        self.run_without(0, job, work)
    }

    /// As [`Dispatcher::run`], but excludes the engines in `without`, one bit each.
    pub(super) fn run_without<T>(
        &self,
        without: u8,
        job: Job,
        mut work: impl FnMut(&mut AnyEngine<'_, D>) -> Result<T, EngineError>,
    ) -> Result<T, DispatchError> {
        self.check_scratch(&job)?;
        let shared = &*self.shared;
        let mut failed = without;
        let mut before: Option<Failed> = None;
        loop {
            let ranking = self.rank(&job, failed);
            let Some(engine) = ranking.chosen else {
                if let Some(Failed {
                    reason,
                    given_up: true,
                    ..
                }) = before
                {
                    shared.tell(&Notice::GivenUp { reason });
                }
                return Err(self.nobody(&job));
            };
            if engine == Engine::Cuda
                && let State::Closed(_) = shared.device.state()
            {
                if let Err(error) = self.open()
                    && self.forced.is_some()
                {
                    return Err(error);
                }
                // The costs may have changed, and the device may be missing.
                continue;
            }
            shared.device.missed(ranking.missed);
            if let Some(before) = before.take() {
                self.goes_on(&job, before, engine);
            }
            let flight = shared
                .flights
                .begin(&job, engine, ranking.predicted(engine));
            let start = Instant::now();
            let failure = match self.by(engine, &job, &mut work)? {
                Ok(done) => {
                    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    // End the flight before counting: otherwise an observer in between would see the call twice.
                    drop(flight);
                    self.count(&job, engine, nanoseconds, &ranking, failed != without);
                    return Ok(done);
                }
                Err(failure) => failure,
            };
            before = Some(self.failed(&job, engine, failure)?);
            failed |= 1 << engine as u8;
        }
    }

    /// Checks under [`Profile::Edge`] that a microcontroller has enough memory.
    fn check_scratch(&self, job: &Job) -> Result<(), DispatchError> {
        let shared = &*self.shared;
        let (needed, available) = (job.scratch, shared.settings.edge_memory);
        if shared.settings.profile != Profile::Edge || needed <= available {
            return Ok(());
        }
        shared.counters.refused();
        Err(DispatchError::Scratch {
            operation: job.operation,
            needed,
            available,
        })
    }

    /// Runs the work on an engine. Returns the result or the failure; an error if the device was chosen and is gone.
    fn by<T>(
        &self,
        engine: Engine,
        job: &Job,
        work: &mut impl FnMut(&mut AnyEngine<'_, D>) -> Result<T, EngineError>,
    ) -> Result<Result<T, Failure>, DispatchError> {
        let shared = &*self.shared;
        let _span = tracing::trace_span!(
            "call",
            operation = job.operation.name(),
            engine = engine.name(),
            elements = job.elements
        )
        .entered();
        let done = match engine {
            Engine::Scalar => work(&mut AnyEngine::Scalar(Scalar)),
            Engine::Simd => work(&mut AnyEngine::Threads(shared.simd)),
            Engine::Threads => work(&mut AnyEngine::Threads(shared.threads)),
            Engine::Cuda => match shared.device.lock() {
                // A caller that asks for the device gets it tried, whatever its room.
                Some(mut device)
                    if self.forced.is_some()
                        || room::is_there(job, |bytes| device.has_room(bytes)) =>
                {
                    work(&mut AnyEngine::Device(&mut *device))
                }
                Some(_) => Err(room::refused(job)),
                None => return Err(self.nobody(job)),
            },
        };
        Ok(done.map_err(Failure::from))
    }

    /// Counts a failure. The caller's error, or a failure of the requested engine, ends the call.
    fn failed(&self, job: &Job, engine: Engine, failure: Failure) -> Result<Failed, DispatchError> {
        let shared = &*self.shared;
        let (source, sound) = match failure {
            Failure::Refused(refused) => {
                shared.counters.refused();
                return Err(DispatchError::Refused(refused));
            }
            Failure::Engine { source, sound } => (source, sound),
        };
        shared.counters.failed(job.operation, engine);
        let mut given_up = false;
        if engine == Engine::Cuda && !sound {
            let works = shared.device.lock().is_some_and(|mut it| it.works());
            given_up = shared.device.failed(works);
        }
        if self.forced.is_some() {
            return Err(DispatchError::Engine { engine, source });
        }
        Ok(Failed {
            engine,
            reason: source.to_string(),
            given_up,
        })
    }

    /// Reports that the next engine continues after a failure.
    fn goes_on(&self, job: &Job, failed: Failed, next: Engine) {
        self.shared.tell(&Notice::Failed {
            operation: job.operation,
            engine: failed.engine,
            reason: failed.reason,
            next,
            given_up: failed.given_up,
        });
    }

    fn count(
        &self,
        job: &Job,
        engine: Engine,
        nanoseconds: u64,
        ranking: &Ranking,
        finished: bool,
    ) {
        let shared = &*self.shared;
        if engine == Engine::Cuda {
            shared.device.worked();
        }
        let prediction = ranking.predicted(engine);
        shared.counters.done(&Call {
            job,
            engine,
            nanoseconds,
            prediction,
            finished,
        });
        if shared.settings.verbose == Verbose::Choices {
            let predicted = prediction.map_or(0.0, |it| it.total());
            eprintln!(
                "tercet: {} of {} elements: {engine}, {} predicted, {} taken",
                job.operation,
                job.elements,
                super::explain::time(predicted),
                super::explain::time(nanoseconds as f64 * 1e-9),
            );
        }
    }

    /// Returns the error for a job that no engine is left for.
    fn nobody(&self, job: &Job) -> DispatchError {
        if self.forced == Some(Engine::Cuda)
            && let Err(error) = self.open()
        {
            return error;
        }
        let explanation = self.explain(job);
        let engine = self.forced.unwrap_or(Engine::Cuda);
        let mut all = explanation.candidates.into_iter();
        let reason = all.find(|candidate| candidate.engine == engine);
        DispatchError::Unavailable {
            engine,
            reason: reason.map_or_else(|| "it failed".into(), |reason| reason.why),
        }
    }
}
