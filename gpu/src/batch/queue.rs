//! The public interface of the queue.

use std::fmt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, Scope};
use std::time::{Duration, Instant};

use super::serve::serve;
use super::shared::{Closing, Patience, QueueCore};
use super::{BatchJob, BatchOptions, BatchStats, Refused, StartError, Ticket, Worker};

/// A queue of requests of one job, and the threads of its workers.
///
/// Submitting threads share it by reference. When it is dropped, it answers all waiting requests, then its threads end.
/// [`Queue::shutdown`] does the same and returns the statistics. [`Queue::abort`] answers only requests whose batch has
/// begun.
pub struct Queue<J: BatchJob> {
    shared: Arc<QueueCore<J>>,
    /// Empty if a scope has the threads.
    threads: Vec<JoinHandle<()>>,
}

impl<J: BatchJob> Queue<J> {
    /// Starts a queue with a thread for each worker.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn new(
        options: BatchOptions,
        workers: impl IntoIterator<Item = Worker<'static, J>>,
    ) -> Result<Self, StartError>
    where
        J: 'static,
    {
        let (mut queue, works) = Self::prepared(options, workers)?;
        for (at, (name, work)) in works.into_iter().enumerate() {
            let shared = Arc::clone(&queue.shared);
            let spawned = Builder::new()
                .name(name.clone())
                .spawn(move || serve(&shared, at, work));
            match spawned {
                Ok(thread) => queue.threads.push(thread),
                Err(source) => return Err(queue.fail(at, name, source)),
            }
        }
        Ok(queue)
    }

    /// Starts a queue with scoped threads, so that its workers and requests may borrow data that outlives the scope:
    /// rows, weights, engines.
    ///
    /// The queue itself must be dropped, closed or shut down within the scope, because the scope waits for its threads.
    /// Submitting threads borrow it in an inner scope.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn in_scope<'scope>(
        scope: &'scope Scope<'scope, '_>,
        options: BatchOptions,
        workers: impl IntoIterator<Item = Worker<'scope, J>>,
    ) -> Result<Self, StartError>
    where
        J: 'scope,
    {
        let (queue, works) = Self::prepared(options, workers)?;
        for (at, (name, work)) in works.into_iter().enumerate() {
            let shared = Arc::clone(&queue.shared);
            let spawned = Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, move || serve(&shared, at, work));
            if let Err(source) = spawned {
                return Err(queue.fail(at, name, source));
            }
        }
        Ok(queue)
    }

    /// Returns a queue without its threads, and the work for them.
    #[expect(clippy::type_complexity, reason = "names and works of threads")]
    fn prepared<'a>(
        options: BatchOptions,
        workers: impl IntoIterator<Item = Worker<'a, J>>,
    ) -> Result<(Self, Vec<(String, Box<dyn super::Executor<J> + 'a>)>), StartError> {
        options.check()?;
        let (mut predictions, mut names, mut works) = (Vec::new(), Vec::new(), Vec::new());
        for worker in workers {
            predictions.push(worker.predict);
            names.push(worker.name.clone());
            works.push((worker.name, worker.work));
        }
        if works.is_empty() {
            return Err(StartError::NoWorker);
        }
        let queue = Self {
            shared: Arc::new(QueueCore::new(options, names, predictions)),
            threads: Vec::new(),
        };
        Ok((queue, works))
    }

    /// Records that the threads from `at` on will not start.
    fn fail(&self, at: usize, worker: String, source: std::io::Error) -> StartError {
        for _ in at..self.shared.stats().workers.len() {
            self.shared.end();
        }
        StartError::Thread { worker, source }
    }

    /// Submits a request; if the queue is full, waits for room. Of several waiting threads any may be next.
    ///
    /// # Errors
    /// [`super::Reason::Closed`], with the request.
    pub fn submit(&self, request: J::Request) -> Result<Ticket<J>, Refused<J::Request>> {
        self.put(request, Patience::Forever)
    }

    /// Submits a request if there is room. Does not wait.
    ///
    /// # Errors
    /// [`super::Reason::Full`] or [`super::Reason::Closed`], with the request.
    pub fn try_submit(&self, request: J::Request) -> Result<Ticket<J>, Refused<J::Request>> {
        self.put(request, Patience::None)
    }

    /// Submits a request; if the queue is full, waits for room until a moment.
    ///
    /// # Errors
    /// [`super::Reason::Full`] or [`super::Reason::Closed`], with the request.
    pub fn submit_until(
        &self,
        request: J::Request,
        deadline: Instant,
    ) -> Result<Ticket<J>, Refused<J::Request>> {
        self.put(request, Patience::Until(deadline))
    }

    /// As [`Queue::submit_until`], with a time from now.
    ///
    /// # Errors
    /// [`super::Reason::Full`] or [`super::Reason::Closed`], with the request.
    pub fn submit_within(
        &self,
        request: J::Request,
        time: Duration,
    ) -> Result<Ticket<J>, Refused<J::Request>> {
        let deadline = Instant::now().checked_add(time);
        self.put(request, deadline.map_or(Patience::Forever, Patience::Until))
    }

    fn put(
        &self,
        request: J::Request,
        patience: Patience,
    ) -> Result<Ticket<J>, Refused<J::Request>> {
        let slot = self.shared.submit(request, patience)?;
        Ok(Ticket::new(slot, Arc::clone(&self.shared)))
    }

    /// Stops accepting requests, and treats waiting ones as `closing` says. Does not wait. A queue closed with
    /// [`Closing::Refuse`] stays so.
    pub fn close(&self, closing: Closing) {
        self.shared.close(closing);
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> BatchStats {
        self.shared.stats()
    }

    /// Stops accepting requests, answers the waiting ones, and ends the threads.
    pub fn shutdown(mut self) -> BatchStats {
        self.end(Closing::Answer);
        self.stats()
    }

    /// Stops accepting requests, waits for batches that have begun, refuses the others, and ends the threads.
    pub fn abort(mut self) -> BatchStats {
        self.end(Closing::Refuse);
        self.stats()
    }

    fn end(&mut self, closing: Closing) {
        self.shared.close(closing);
        self.shared.wait();
        for thread in self.threads.drain(..) {
            // Panics were reported to the tickets.
            let _ = thread.join();
        }
    }
}

impl<J: BatchJob> Drop for Queue<J> {
    fn drop(&mut self) {
        self.end(Closing::Answer);
    }
}

impl<J: BatchJob> fmt::Debug for Queue<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
