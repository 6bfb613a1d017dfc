//! The queue as its users see it.

use std::fmt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, Scope};
use std::time::{Duration, Instant};

use super::serve::serve;
use super::shared::{Closing, Patience, Shared};
use super::{BatchOptions, BatchStats, Job, Refused, StartError, Ticket, Worker};

/// A queue of requests of one job, and the threads of its workers.
///
/// It is shared by reference among threads that submit. Dropped, it answers all that waits, then its threads end; so do
/// [`Queue::shutdown`], which tells what was counted, and [`Queue::abort`], which answers only what has begun.
pub struct Queue<J: Job> {
    shared: Arc<Shared<J>>,
    /// None where a scope has them.
    threads: Vec<JoinHandle<()>>,
}

impl<J: Job> Queue<J> {
    /// A queue with a thread for each worker.
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

    /// A queue whose threads are a scope's, so that its workers and requests may borrow what outlives the scope: rows, weights, engines.
    ///
    /// The queue itself must be dropped, closed or shut down within the scope, which ends with its threads. Threads that submit borrow it
    /// in a scope within.
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

    /// A queue without its threads, and what these are to do.
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
            shared: Arc::new(Shared::new(options, names, predictions)),
            threads: Vec::new(),
        };
        Ok((queue, works))
    }

    /// The threads from `at` on will not be.
    fn fail(&self, at: usize, worker: String, source: std::io::Error) -> StartError {
        for _ in at..self.shared.stats().workers.len() {
            self.shared.end();
        }
        StartError::Thread { worker, source }
    }

    /// Submits a request; where the queue is full, waits for room. Of several that wait any may be next.
    ///
    /// # Errors
    /// [`super::Reason::Closed`], with the request.
    pub fn submit(&self, request: J::Request) -> Result<Ticket<J>, Refused<J::Request>> {
        self.put(request, Patience::Forever)
    }

    /// Submits a request if there is room. Waits for nothing.
    ///
    /// # Errors
    /// [`super::Reason::Full`] or [`super::Reason::Closed`], with the request.
    pub fn try_submit(&self, request: J::Request) -> Result<Ticket<J>, Refused<J::Request>> {
        self.put(request, Patience::None)
    }

    /// Submits a request; where the queue is full, waits for room until a moment.
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

    /// Takes no more requests, and does with those that wait as told; does not wait itself. What was closed to refuse stays so.
    pub fn close(&self, closing: Closing) {
        self.shared.close(closing);
    }

    /// What was counted until now.
    pub fn stats(&self) -> BatchStats {
        self.shared.stats()
    }

    /// Takes no more requests, answers those that wait, and ends the threads.
    pub fn shutdown(mut self) -> BatchStats {
        self.end(Closing::Answer);
        self.stats()
    }

    /// Takes no more requests, waits for batches that have begun, refuses the others, and ends the threads.
    pub fn abort(mut self) -> BatchStats {
        self.end(Closing::Refuse);
        self.stats()
    }

    fn end(&mut self, closing: Closing) {
        self.shared.close(closing);
        self.shared.wait();
        for thread in self.threads.drain(..) {
            // What panicked was told to its tickets.
            let _ = thread.join();
        }
    }
}

impl<J: Job> Drop for Queue<J> {
    fn drop(&mut self) {
        self.end(Closing::Answer);
    }
}

impl<J: Job> fmt::Debug for Queue<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
