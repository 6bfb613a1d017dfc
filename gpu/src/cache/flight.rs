//! A value that is being computed or moved, and the threads that wait for it.

use std::sync::Arc;

use crate::sync::{Condvar, Mutex, lock, wait};

/// One computation, upload or download of a key's value. One thread leads it; others wait for its end.
pub(super) struct Flight<D> {
    state: Mutex<State<D>>,
    ended: Condvar,
}

enum State<D> {
    Under,
    Ended(Option<Arc<D>>),
}

impl<D> Flight<D> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::Under),
            ended: Condvar::new(),
        }
    }

    /// Ends it with the value; without one, the waiting threads look again. The first end counts.
    pub(super) fn end(&self, value: Option<Arc<D>>) {
        let mut state = lock(&self.state);
        if matches!(*state, State::Under) {
            *state = State::Ended(value);
            drop(state);
            self.ended.notify_all();
        }
    }

    /// Waits for the end.
    pub(super) fn wait(&self) -> Option<Arc<D>> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Ended(value) => return value.clone(),
                State::Under => state = wait(&self.ended, state, None),
            }
        }
    }
}
