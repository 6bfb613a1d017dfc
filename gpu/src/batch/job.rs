//! What is asked of a queue, and what its workers do.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

/// What the requests of a queue are.
///
/// A type of no value: it names what belongs together. Those of Tercet's operations stand in [`crate::batch::executors`].
pub trait Job {
    /// What one request asks.
    type Request: Send;
    /// What it gets.
    type Answer: Send;
    /// Why it gets none. All requests of a batch that failed as a whole share one.
    type Error: Send + Sync;
    /// What requests must have in common to be done together: a width, a count of hits; `()` where all may be.
    type Kind: Clone + Eq + Hash + Send + Sync;

    /// The kind of a request. Called by the thread that submits it.
    fn kind(request: &Self::Request) -> Self::Kind;
}

/// What a worker does with the requests of a batch: an engine, and what it holds for all of them.
///
/// It runs on a thread of its own. A panic in any of its functions is [`super::BatchError::Panicked`] for the requests it was about,
/// and the work is asked again with the next batch.
pub trait Executor<J: Job>: Send {
    /// Refuses a request that would spoil the batch it is in, by its length or its values. Only this request gets the error.
    ///
    /// # Errors
    /// What [`Executor::run`] would say of the request alone.
    fn check(&self, request: &J::Request) -> Result<(), J::Error> {
        let _ = request;
        Ok(())
    }

    /// How many of `wanted` requests of a kind there is room for now: a batch that is larger is run in parts. An answer of 0 counts
    /// as 1, and what is asked is at least 1.
    fn most(&self, kind: &J::Kind, wanted: usize) -> usize {
        let _ = kind;
        wanted
    }

    /// Does requests of one kind, all of which [`Executor::check`] let pass: an answer for each, in order, as it would be alone.
    ///
    /// # Errors
    /// Then none of them is answered.
    fn run(&mut self, kind: &J::Kind, requests: &[J::Request]) -> Result<Vec<J::Answer>, J::Error>;

    /// Whether fewer requests may succeed where more failed with this error, as for want of memory: a part is then run again in halves,
    /// down to single requests.
    fn splits(&self, error: &J::Error) -> bool {
        let _ = error;
        false
    }
}

/// Predicts what a worker takes for a batch. A dispatcher's model of costs is plugged in here.
///
/// Asked while the queue is locked: it answers from a table, in well under a microsecond. Wrong predictions cost time only.
pub trait Predict<K>: Send + Sync {
    /// The time for a batch of `requests` requests, at least 1, of this kind.
    fn predict(&self, kind: &K, requests: usize) -> Duration;
}

/// The same time for every launch, and for every request in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// What a batch takes however small it is.
    pub launch: Duration,
    /// What each request adds.
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

/// One of a queue's workers: what it does, and what that is predicted to take.
pub struct Worker<'a, J: Job> {
    pub(super) name: String,
    pub(super) work: Box<dyn Executor<J> + 'a>,
    pub(super) predict: Box<dyn Predict<J::Kind>>,
}

impl<'a, J: Job> Worker<'a, J> {
    /// A worker of this name, of which nothing is known: batches go to the worker that has the fewest.
    pub fn new(name: impl Into<String>, work: impl Executor<J> + 'a) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
            predict: Box::new(Linear::default()),
        }
    }

    /// With predictions.
    #[must_use]
    pub fn with_prediction(mut self, predict: impl Predict<J::Kind> + 'static) -> Self {
        self.predict = Box::new(predict);
        self
    }
}

impl<J: Job> fmt::Debug for Worker<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
