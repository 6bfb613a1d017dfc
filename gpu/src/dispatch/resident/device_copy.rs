//! Where a handle's data is, and when to copy it to the device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_host::engine::EngineError;

use super::DEVICE;
use crate::AnyEngine;
use crate::dispatch::choose::State;
use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Job};

/// Data that may be on the device too.
#[derive(Debug)]
pub(in crate::dispatch) struct DeviceCopy<T> {
    place: Mutex<CopyState<T>>,
    /// Nanoseconds that calls would have saved with the data on the device.
    saved: AtomicU64,
}

#[derive(Debug)]
enum CopyState<T> {
    /// On the host only.
    HostOnly,
    /// On the device too.
    OnDevice(Arc<T>),
    /// On the host only: there was no room on the device.
    NoRoom,
}

impl<T> DeviceCopy<T> {
    pub(super) const fn new() -> Self {
        Self {
            place: Mutex::new(CopyState::HostOnly),
            saved: AtomicU64::new(0),
        }
    }

    fn place(&self) -> MutexGuard<'_, CopyState<T>> {
        // A thread that panicked changed the place before or after, never half.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_there(&self) -> bool {
        matches!(*self.place(), CopyState::OnDevice(_))
    }

    /// Frees the device's memory when the last call that uses it has ended.
    pub(super) fn release(&self) {
        *self.place() = CopyState::HostOnly;
        self.saved.store(0, Ordering::Relaxed);
    }

    /// Returns the data on the device, and copies it there first if needed. The caller has the device locked, so nobody
    /// else copies it at the same time.
    pub(super) fn load<D>(
        &self,
        device: &mut D,
        load: &mut impl FnMut(&mut D) -> Result<T, EngineError>,
    ) -> Result<Arc<T>, EngineError> {
        if let CopyState::OnDevice(there) = &*self.place() {
            return Ok(Arc::clone(there));
        }
        // The place is not locked here, so that others can read it meanwhile.
        let loaded = load(device);
        let mut place = self.place();
        match loaded {
            Ok(loaded) => {
                let there = Arc::new(loaded);
                *place = CopyState::OnDevice(Arc::clone(&there));
                Ok(there)
            }
            Err(fault) => {
                if matches!(fault, EngineError::NoRoom(_)) {
                    *place = CopyState::NoRoom;
                }
                Err(fault)
            }
        }
    }

    /// Runs a job on this data, of which `bytes` bytes can be held. `work` receives the engine, and the data on the
    /// device if that is the engine.
    pub(super) fn run<D: Device, R>(
        &self,
        dispatcher: &Dispatcher<D>,
        job: Job,
        bytes: usize,
        mut load: impl FnMut(&mut D) -> Result<T, EngineError>,
        mut work: impl FnMut(&mut AnyEngine<'_, D>, Option<&T>) -> Result<R, EngineError>,
    ) -> Result<R, DispatchError> {
        let (job, without) = self.job(dispatcher, job, bytes as u64);
        dispatcher.run_without(without, job, |engine| {
            let there = match engine {
                AnyEngine::Device(device) => Some(self.load(&mut **device, &mut load)?),
                AnyEngine::Scalar(_) | AnyEngine::Threads(_) => None,
            };
            work(engine, there.as_deref())
        })
    }

    /// Returns the job as the choice should see it, and the excluded engines.
    fn job<D: Device>(&self, dispatcher: &Dispatcher<D>, job: Job, bytes: u64) -> (Job, u8) {
        let held = job.holding(bytes);
        match *self.place() {
            CopyState::OnDevice(_) => return (held, 0),
            CopyState::NoRoom if !dispatcher.is_on(Engine::Cuda) => return (job, DEVICE),
            CopyState::NoRoom | CopyState::HostOnly => {}
        }
        match dispatcher.device_state() {
            // Calls of a handle count as saving the time that they would save with the data on the device; this decides
            // when the device is opened.
            State::Closed(_) => (held, 0),
            State::Open if self.pays(dispatcher, &job, &held) => (held, 0),
            _ => (job, 0),
        }
    }

    /// True if calls, this one included, would have saved the time that the copy takes.
    fn pays<D: Device>(&self, dispatcher: &Dispatcher<D>, away: &Job, held: &Job) -> bool {
        let (away, held) = (dispatcher.rank(away, 0), dispatcher.rank(held, 0));
        if away.chosen == Some(Engine::Cuda) || held.chosen != Some(Engine::Cuda) {
            return false;
        }
        let of = |engine| away.predicted(engine);
        let (Some(here), Some(crossing), Some(there)) = (
            away.chosen.and_then(of),
            of(Engine::Cuda),
            held.predicted(Engine::Cuda),
        ) else {
            return false;
        };
        let saved = (here.total() - there.total()).max(0.0) * 1e9;
        let before = self.saved.fetch_add(saved as u64, Ordering::Relaxed);
        before as f64 + saved >= (crossing.transfer - there.transfer) * 1e9
    }
}
