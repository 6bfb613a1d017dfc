//! The device: it is opened once, when that pays off, and no longer used once it stops working.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::choose::State;

/// Opens a device, or returns in one line why there is none.
pub(super) type Opener<D> = Box<dyn Fn() -> Result<D, String> + Send + Sync>;

/// Returns in one line why there is no device, if that can be known without opening one.
pub(super) type Absent = fn() -> Option<String>;

/// After this many failures in a row the device is no longer used.
const FAILURES: u32 = 3;

/// A device and its state.
pub(super) struct Slot<D> {
    opener: Opener<D>,
    /// Why there is no device; asked once.
    absent: OnceLock<Option<String>>,
    is_absent: Absent,
    device: OnceLock<Result<Mutex<D>, String>>,
    given_up: AtomicBool,
    /// Failures since it last worked.
    failures: AtomicU32,
    /// Nanoseconds that calls would have saved on it while it was closed.
    saved: AtomicU64,
}

impl<D> Slot<D> {
    pub(super) fn new(opener: Opener<D>, is_absent: Absent) -> Self {
        Self {
            opener,
            absent: OnceLock::new(),
            is_absent,
            device: OnceLock::new(),
            given_up: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            saved: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> State {
        match self.device.get() {
            None if self.absent().is_some() => State::Missing,
            None => State::Closed(self.saved.load(Ordering::Relaxed) as f64 * 1e-9),
            Some(Err(_)) => State::Missing,
            Some(Ok(_)) if self.given_up.load(Ordering::Relaxed) => State::GivenUp,
            Some(Ok(_)) => State::Open,
        }
    }

    fn absent(&self) -> Option<&str> {
        self.absent.get_or_init(self.is_absent).as_deref()
    }

    /// Returns why there is no device, if there is none.
    pub(super) fn missing(&self) -> Option<&str> {
        match self.device.get() {
            None => self.absent(),
            Some(opened) => opened.as_ref().err().map(String::as_str),
        }
    }

    /// Adds the seconds that a call would have saved.
    pub(super) fn missed(&self, seconds: f64) {
        if seconds > 0.0 {
            // A sum that rounds down to less than 1 ns does not matter.
            self.saved
                .fetch_add((seconds * 1e9) as u64, Ordering::Relaxed);
        }
    }

    /// Opens the device unless it was opened before; `first` receives the outcome, once.
    pub(super) fn open(&self, first: impl FnOnce(Result<&mut D, &str>)) -> Result<(), &str> {
        let opened = self.device.get_or_init(|| match (self.opener)() {
            Ok(mut device) => {
                first(Ok(&mut device));
                Ok(Mutex::new(device))
            }
            Err(reason) => {
                first(Err(&reason));
                Err(reason)
            }
        });
        opened.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Returns the open device, for one call at a time.
    pub(super) fn lock(&self) -> Option<MutexGuard<'_, D>> {
        let device = self.device.get()?.as_ref().ok()?;
        // After a call that panicked, the engine itself reports its state.
        Some(device.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that the device did its work.
    pub(super) fn worked(&self) {
        // Usually there is nothing to write.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Records a failure, after which the device may or may not work. Returns true if the device is given up because of
    /// it.
    pub(super) fn failed(&self, works: bool) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        (failures >= FAILURES || !works) && !self.given_up.swap(true, Ordering::Relaxed)
    }
}

impl<D> fmt::Debug for Slot<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
