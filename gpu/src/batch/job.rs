//! The requests of a queue, and the work of its workers.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

/// The type of a queue's requests.
///
/// A type without values: it names the types that belong together. Those of Tercet's operations are in
/// [`crate::batch::executors`].
pub trait BatchJob {
    /// A request.
    type Request: Send;
    /// The answer to a request.
    type Answer: Send;
    /// The error of a request. All requests of a batch that failed as a whole share one.
    type Error: Send + Sync;
    /// The common property of requests that can be done together: a width, a number of hits; `()` if all can.
    type Kind: Clone + Eq + Hash + Send + Sync;

    /// Returns the kind of a request. Called by the submitting thread.
    fn kind(request: &Self::Request) -> Self::Kind;
}

/// The work of a worker on the requests of a batch: an engine, and the data that it holds for all of them.
///
/// It runs on its own thread. A panic in any of its functions becomes [`super::BatchError::Panicked`] for the requests
/// concerned, and the work is called again for the next batch.
pub trait Executor<J: BatchJob>: Send {
    /// Refuses a request that would spoil its batch, by its length or its values. Only this request gets the error.
    ///
    /// # Errors
    /// The error that [`Executor::run`] would return for the request alone.
    fn check(&self, request: &J::Request) -> Result<(), J::Error> {
        let _ = request;
        Ok(())
    }

    /// Returns how many of `wanted` requests of a kind there is room for now: a larger batch is run in parts. `wanted`
    /// is at least 1, and a result of 0 counts as 1.
    fn most(&self, kind: &J::Kind, wanted: usize) -> usize {
        let _ = kind;
        wanted
    }

    /// Runs requests of one kind that have all passed [`Executor::check`]. Returns an answer for each, in order, with
    /// the same value as if it ran alone.
    ///
    /// # Errors
    /// After an error none of the requests is answered.
    fn run(&mut self, kind: &J::Kind, requests: &[J::Request]) -> Result<Vec<J::Answer>, J::Error>;

    /// True if fewer requests may succeed after this error, for example for lack of memory. A part is then run again in
    /// halves, down to single requests.
    fn splits(&self, error: &J::Error) -> bool {
        let _ = error;
        false
    }
}

/// Predicts the time of a worker for a batch, for example with a dispatcher's cost model.
///
/// Called while the queue is locked: it must answer from a table, in well under a microsecond. Wrong predictions only
/// cost time.
pub trait Predict<K>: Send + Sync {
    /// Returns the time for a batch of `requests` requests, at least 1, of this kind.
    fn predict(&self, kind: &K, requests: usize) -> Duration;
}

/// The same time for every launch, plus the same time for every request in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// Time of a batch, however small it is.
    pub launch: Duration,
    /// Additional time of each request.
    pub each: Duration,
}

impl<K> Predict<K> for Linear {
    fn predict(&self, _: &K, requests: usize) -> Duration {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.each
            .checked_mul(requests)
            .and_then(|each| self.launch.checked_add(each))
            .unwrap_or(Duration::MAX)
    }
}

/// One of a queue's workers: its work, and the prediction of its time.
pub struct Worker<'a, J: BatchJob> {
    pub(super) name: String,
    pub(super) work: Box<dyn Executor<J> + 'a>,
    pub(super) predict: Box<dyn Predict<J::Kind>>,
}

impl<'a, J: BatchJob> Worker<'a, J> {
    /// Returns a worker with this name and without predictions: batches go to the worker with the fewest batches.
    pub fn new(name: impl Into<String>, work: impl Executor<J> + 'a) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
            predict: Box::new(Linear::default()),
        }
    }

    /// Returns the worker with predictions.
    #[must_use]
    pub fn with_prediction(mut self, predict: impl Predict<J::Kind> + 'static) -> Self {
        self.predict = Box::new(predict);
        self
    }
}

impl<J: BatchJob> fmt::Debug for Worker<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
