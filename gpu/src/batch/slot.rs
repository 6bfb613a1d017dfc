//! Where one request waits and its answer appears.

use std::mem;
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// A request on its way, of which two know: the queue's side and the ticket.
///
/// It goes from waiting to running to done, or from any of them to gone. Each step is one thread's under the lock, so whether a batch
/// begins with it or it is cancelled, and whether its answer is taken, is decided once.
pub(super) struct Slot<R, A> {
    inner: Mutex<Inner<R, A>>,
    done: Condvar,
}

struct Inner<R, A> {
    state: State<R, A>,
    /// Whether the ticket's owner waits.
    asleep: bool,
}

enum State<R, A> {
    /// No batch has begun with it.
    Waiting(R),
    /// A batch has.
    Running,
    /// The answer has come.
    Done(A),
    /// Nobody wants an answer, or it was taken.
    Gone,
}

/// What [`Slot::cancel`] found; it is dropped without the lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left<R, A> {
    /// The request, which takes no part in any batch.
    Request(R),
    /// A batch had begun with it; its answer, where it had come.
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

    /// Whether no batch has begun with it, and it is still wanted.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.lock().state, State::Waiting(_))
    }

    /// Whether the answer is here.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.lock().state, State::Done(_))
    }

    /// A batch begins: the request, if it still waits.
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

    /// The answer of a request that was started. It comes back where nobody wants it.
    pub(super) fn finish(&self, answer: A) -> Result<(), A> {
        let mut inner = self.lock();
        if !matches!(inner.state, State::Running) {
            return Err(answer);
        }
        inner.state = State::Done(answer);
        let asleep = inner.asleep;
        drop(inner);
        // A ticket is one thread's.
        if asleep {
            self.done.notify_one();
        }
        Ok(())
    }

    /// Nobody wants the answer any more.
    pub(super) fn cancel(&self) -> Left<R, A> {
        match mem::replace(&mut self.lock().state, State::Gone) {
            State::Waiting(request) => Left::Request(request),
            State::Done(answer) => Left::Begun(Some(answer)),
            State::Running | State::Gone => Left::Begun(None),
        }
    }

    /// The answer, once it has come; `None` where that is not before `until`.
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
