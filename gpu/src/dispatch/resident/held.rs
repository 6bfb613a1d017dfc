//! Where a handle's data lies, and when it is to go to the device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_host::engine::EngineError;

use super::DEVICE;
use crate::AnyEngine;
use crate::dispatch::choose::State;
use crate::dispatch::engine::Device;
use crate::dispatch::{DispatchError, Dispatcher, Engine, Job};

/// Data that may lie on the device too.
#[derive(Debug)]
pub(in crate::dispatch) struct Held<T> {
    place: Mutex<Place<T>>,
    /// Nanoseconds that calls would have saved with the data there.
    saved: AtomicU64,
}

#[derive(Debug)]
enum Place<T> {
    /// With the host alone.
    Host,
    /// On the device too.
    There(Arc<T>),
    /// With the host alone: there was no room on the device.
    NoRoom,
}

impl<T> Held<T> {
    pub(super) const fn new() -> Self {
        Self {
            place: Mutex::new(Place::Host),
            saved: AtomicU64::new(0),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place<T>> {
        // Whoever panicked has changed it before or after, not half.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_there(&self) -> bool {
        matches!(*self.place(), Place::There(_))
    }

    /// Gives the device's memory back, when the last call with it has ended.
    pub(super) fn release(&self) {
        *self.place() = Place::Host;
        self.saved.store(0, Ordering::Relaxed);
    }

    /// The data on the device, brought there unless it is. Who calls has the device, so that nobody else brings it meanwhile.
    pub(super) fn load<D>(
        &self,
        device: &mut D,
        load: &mut impl FnMut(&mut D) -> Result<T, EngineError>,
    ) -> Result<Arc<T>, EngineError> {
        if let Place::There(there) = &*self.place() {
            return Ok(Arc::clone(there));
        }
        // Others look meanwhile where it lies.
        let loaded = load(device);
        let mut place = self.place();
        match loaded {
            Ok(loaded) => {
                let there = Arc::new(loaded);
                *place = Place::There(Arc::clone(&there));
                Ok(there)
            }
            Err(fault) => {
                if matches!(fault, EngineError::NoRoom(_)) {
                    *place = Place::NoRoom;
                }
                Err(fault)
            }
        }
    }

    /// Does a job whose data this is, so many bytes of it: `work` by an engine, with what is on the device if that is the one.
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

    /// The job as the choice is to see it, and the engines that are out.
    fn job<D: Device>(&self, dispatcher: &Dispatcher<D>, job: Job, bytes: u64) -> (Job, u8) {
        let held = job.holding(bytes);
        match *self.place() {
            Place::There(_) => return (held, 0),
            Place::NoRoom if !dispatcher.is_on(Engine::Cuda) => return (job, DEVICE),
            Place::NoRoom | Place::Host => {}
        }
        match dispatcher.device_state() {
            // Calls of a handle save what they would with the data there: by that the device is opened.
            State::Closed(_) => (held, 0),
            State::Open if self.pays(dispatcher, &job, &held) => (held, 0),
            _ => (job, 0),
        }
    }

    /// Whether calls would have saved what the crossing takes, with this one.
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
