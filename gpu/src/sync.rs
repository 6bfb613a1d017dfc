//! Locks: the standard library's, or loom's while its models run (`.ci/steps/loom.sh`).

use std::sync::PoisonError;
use std::time::Instant;

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Locks, even after a panic of another thread: code under these locks leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, a spurious wake-up, or a moment.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> MutexGuard<'a, T> {
    let Some(until) = until else {
        return condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    };
    let left = until.saturating_duration_since(Instant::now());
    let waited = condvar.wait_timeout(guard, left);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
