//! The submitter's handle of a request.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::{QueueCore, SlotOf};
use super::{BatchError, BatchJob};

/// The claim to one answer.
///
/// If it is dropped before the request's batch has begun, the request is removed; afterwards, the answer is dropped
/// when it comes. It may outlive its queue.
#[must_use = "a ticket that is dropped cancels its request"]
pub struct Ticket<J: BatchJob> {
    slot: Arc<SlotOf<J>>,
    shared: Arc<QueueCore<J>>,
}

impl<J: BatchJob> Ticket<J> {
    pub(super) const fn new(slot: Arc<SlotOf<J>>, shared: Arc<QueueCore<J>>) -> Self {
        Self { slot, shared }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// [`BatchError`]: why there is none.
    pub fn wait(self) -> Result<J::Answer, BatchError<J::Error>> {
        // Without a deadline it waits until there is one.
        let outcome = self.slot.wait(None);
        outcome.unwrap_or(Err(BatchError::Closed))
    }

    /// Waits for the answer, or until a moment.
    ///
    /// # Errors
    /// The ticket, if there is no answer yet.
    pub fn wait_until(
        self,
        deadline: Instant,
    ) -> Result<Result<J::Answer, BatchError<J::Error>>, Self> {
        self.slot.wait(Some(deadline)).ok_or(self)
    }

    /// As [`Ticket::wait_until`], with a time from now.
    ///
    /// # Errors
    /// The ticket, if there is no answer yet.
    pub fn wait_for(self, time: Duration) -> Result<Result<J::Answer, BatchError<J::Error>>, Self> {
        match Instant::now().checked_add(time) {
            Some(deadline) => self.wait_until(deadline),
            None => Ok(self.wait()),
        }
    }

    /// True if the answer is available.
    pub fn is_done(&self) -> bool {
        self.slot.is_done()
    }

    /// Gives the claim up, as dropping does. Returns true if the request will be in no batch; false if a batch had
    /// begun with it, or it was answered.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn cancel(self) -> bool {
        self.shared.cancel(&self.slot)
    }
}

impl<J: BatchJob> Drop for Ticket<J> {
    fn drop(&mut self) {
        self.shared.cancel(&self.slot);
    }
}

impl<J: BatchJob> fmt::Debug for Ticket<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("done", &self.is_done())
            .finish_non_exhaustive()
    }
}
