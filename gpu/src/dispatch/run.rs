//! A call from its choice to its count: the chosen engine, and the next where it fails.

use std::time::Instant;

use tercet_core::scalar::Scalar;

use super::choose::{Ranking, State};
use super::dispatcher::Dispatcher;
use super::engine::Device;
use super::metrics::Call;
use super::notice::{DispatchError, Failure, Notice};
use super::resident::{Alike, Task};
use super::room;
use super::settings::{Profile, Verbose};
use super::work::Work;
use super::{Engine, Job};

impl<D: Device> Dispatcher<D> {
    /// Does a piece of work on the engine that costs least for it: what all calls are made of.
    ///
    /// # Errors
    /// The caller's mistakes, as [`DispatchError`] has them, which no other engine is asked about. An engine's own failure only of
    /// a handle [`Dispatcher::on`] that engine; else the next engine does the work from the start, with the same bits.
    pub fn run<W: Work>(&self, work: W) -> Result<W::Done, DispatchError> {
        self.drive(Alike(work))
    }

    /// As [`Dispatcher::run`], with what a device does in a way of its own.
    pub(super) fn drive<T: Task<D>>(&self, mut task: T) -> Result<T::Done, DispatchError> {
        let job = task.job();
        let shared = &*self.shared;
        let settings = &shared.settings;
        if settings.profile == Profile::Edge {
            let (needed, available) = (task.scratch(), settings.edge_memory);
            if needed > available {
                shared.counters.refused();
                return Err(DispatchError::Scratch {
                    operation: job.operation,
                    needed,
                    available,
                });
            }
        }
        let mut failed = task.without();
        // What the last engine failed with, and whether it is left alone now, until it is known who goes on.
        let mut before: Option<(Engine, String, bool)> = None;
        loop {
            let ranking = self.rank(&job, failed);
            let Some(engine) = ranking.chosen else {
                if let Some((_, reason, true)) = before {
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
                // Costs may be others now, and the device may be missing.
                continue;
            }
            shared.device.missed(ranking.missed);
            if let Some((failed, reason, given_up)) = before.take() {
                shared.tell(&Notice::Failed {
                    operation: job.operation,
                    engine: failed,
                    reason,
                    next: engine,
                    given_up,
                });
            }
            let flight = shared
                .flights
                .begin(&job, engine, ranking.predicted(engine));
            let _span = tracing::trace_span!(
                "call",
                operation = job.operation.name(),
                engine = engine.name(),
                elements = job.elements
            )
            .entered();
            let start = Instant::now();
            let done = match engine {
                Engine::Scalar => task.on_host(&mut Scalar),
                Engine::Simd => task.on_host(&mut { shared.simd }),
                Engine::Threads => task.on_host(&mut { shared.threads }),
                Engine::Cuda => match shared.device.lock() {
                    // Who asks for the device has it tried.
                    Some(mut device)
                        if self.forced.is_some()
                            || room::is_there(&job, |bytes| device.has_room(bytes)) =>
                    {
                        task.on_device(&mut *device)
                    }
                    Some(_) => Err(room::refused(&job)),
                    None => return Err(self.nobody(&job)),
                },
            };
            let failure = match done.map_err(Failure::from) {
                Ok(done) => {
                    let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    // Before it is counted: who looks in between would see it twice.
                    drop(flight);
                    self.count(
                        &job,
                        engine,
                        nanoseconds,
                        &ranking,
                        failed != task.without(),
                    );
                    return Ok(done);
                }
                Err(failure) => failure,
            };
            match failure {
                Failure::Refused(error) => {
                    shared.counters.refused();
                    return Err(error);
                }
                Failure::Engine { source, sound } => {
                    shared.counters.failed(job.operation, engine);
                    let mut given_up = false;
                    if engine == Engine::Cuda && !sound {
                        let works = shared.device.lock().is_some_and(|mut it| it.works());
                        given_up = shared.device.failed(works);
                    }
                    // Who asked for the engine hears of it by the error.
                    if self.forced.is_some() {
                        return Err(DispatchError::Engine { engine, source });
                    }
                    failed |= 1 << engine as u8;
                    before = Some((engine, source.to_string(), given_up));
                }
            }
        }
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

    /// Nobody is left for a job.
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
