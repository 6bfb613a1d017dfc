//! Whole flows of `tercet_host`: files and floats included.

use std::error::Error as StdError;

use tercet_host::Error;
use tercet_host::engine::EngineError;

use super::dispatcher::Dispatcher;
use super::engine::Device;
use super::notice::DispatchError;
use super::{Engine, Job};
use crate::AnyEngine;

impl<D: Device> Dispatcher<D> {
    /// Runs a flow of `tercet_host` on the engine with the lowest cost for its `job`, or on the next engine if that one
    /// fails. `flow` gives its engine to a function such as
    /// [`KMeans::fit_on`](tercet_host::KMeans::fit_on), [`search`](tercet_host::search::search) or
    /// [`quantize`](tercet_host::quantize).
    ///
    /// ```
    /// use tercet_gpu::dispatch::{Dispatcher, Job, Settings};
    /// use tercet_host::KMeans;
    /// use tercet_host::points::Points;
    ///
    /// let points = Points::from_rows(2, vec![0.0, 0.0, 0.1, 0.0, 5.0, 5.0, 5.0, 5.1])?;
    /// let mut kmeans = KMeans::new(2);
    /// let run = kmeans.options().run;
    /// let job = Job::kmeans(points.rows(), points.dims(), 2, run.lloyd.max_iter, run.restarts);
    /// let dispatcher = Dispatcher::new(Settings::default());
    /// let found = dispatcher.flow(job, |engine| kmeans.fit_on(engine, &points))?;
    /// assert_eq!(found.labels()[0], found.labels()[1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the flow; [`Error::Engine`] if no engine could do it, or if it needs more scratch than
    /// [`Profile::Edge`](super::Profile::Edge) has.
    pub fn flow<T>(
        &self,
        job: Job,
        mut flow: impl FnMut(&mut AnyEngine<'_, D>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = self.run(job.in_flow(), |engine| match flow(engine) {
            // Files and options are not the cause: another engine may do the work.
            Err(Error::Engine { source, .. }) => Err(EngineError::Failed(source)),
            done => Ok(done),
        });
        done.unwrap_or_else(|error| Err(of_flow(error)))
    }
}

fn of_flow(error: DispatchError) -> Error {
    let (engine, source): (_, Box<dyn StdError + Send + Sync>) = match error {
        DispatchError::Engine { engine, source } => (engine.name(), source),
        DispatchError::Unavailable { engine, reason } => (engine.name(), reason.into()),
        DispatchError::Scratch {
            operation,
            needed,
            available,
        } => {
            let reason = format!(
                "{operation} needs {needed} bytes of memory and has {available}; \
                 --edge-memory sets how many it has"
            );
            ("--profile edge", reason.into())
        }
        // Flows themselves report errors of their input.
        other => (Engine::Scalar.name(), other.to_string().into()),
    };
    Error::Engine {
        engine: engine.to_owned(),
        source,
    }
}
