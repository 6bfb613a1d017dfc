//! The slot where one request waits and its answer appears.

use std::mem;
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// A pending request, shared by the queue's side and the ticket.
///
/// It goes from waiting to running to done, or from any of these to gone. One thread makes each step, under the lock,
/// so each question is decided once: whether a batch begins with it or it is cancelled, and whether its answer is
/// taken.
pub(super) struct Slot<R, A> {
    inner: Mutex<Inner<R, A>>,
    done: Condvar,
}

struct Inner<R, A> {
    state: State<R, A>,
    /// True if the ticket's owner waits.
    asleep: bool,
}

enum State<R, A> {
    /// It is in no batch that has begun.
    Waiting(R),
    /// Its batch has begun.
    Running,
    /// The answer is available.
    Done(A),
    /// The answer is not wanted any more, or was taken.
    Gone,
}

/// The result of [`Slot::cancel`]. It is dropped outside the lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left<R, A> {
    /// The request, which will be in no batch.
    Request(R),
    /// A batch had begun with it; its answer, if available.
    Begun(Option<A>),
}

impl<R, A> Slot<R, A> {
    pub(super) fn new(request: R) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state: State::Waiting(request),
                asleep: false,
            }),
            done: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<R, A>> {
        lock(&self.inner)
    }

    /// True if no batch has begun with it, and it is still wanted.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.lock().state, State::Waiting(_))
    }

    /// True if the answer is available.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.lock().state, State::Done(_))
    }

    /// Starts the request if it still waits, and returns it.
    pub(super) fn start(&self) -> Option<R> {
        let mut inner = self.lock();
        match mem::replace(&mut inner.state, State::Running) {
            State::Waiting(request) => Some(request),
            other => {
                inner.state = other;
                None
            }
        }
    }

    /// Stores the answer of a started request. Returns it if it is not wanted any more.
    pub(super) fn finish(&self, answer: A) -> Result<(), A> {
        let mut inner = self.lock();
        if !matches!(inner.state, State::Running) {
            return Err(answer);
        }
        inner.state = State::Done(answer);
        let asleep = inner.asleep;
        drop(inner);
        // Only one thread has the ticket.
        if asleep {
            self.done.notify_one();
        }
        Ok(())
    }

    /// Records that the answer is not wanted any more.
    pub(super) fn cancel(&self) -> Left<R, A> {
        match mem::replace(&mut self.lock().state, State::Gone) {
            State::Waiting(request) => Left::Request(request),
            State::Done(answer) => Left::Begun(Some(answer)),
            State::Running | State::Gone => Left::Begun(None),
        }
    }

    /// Waits for the answer; `None` if it is not available before `until`.
    pub(super) fn wait(&self, until: Option<Instant>) -> Option<A> {
        let mut inner = self.lock();
        loop {
            match mem::replace(&mut inner.state, State::Gone) {
                State::Done(answer) => return Some(answer),
                other => inner.state = other,
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return None;
            }
            inner.asleep = true;
            inner = wait(&self.done, inner, until);
            inner.asleep = false;
        }
    }
}
