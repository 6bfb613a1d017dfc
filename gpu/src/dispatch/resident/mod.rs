//! Data that calls come back to: with the host, and on the device where that pays.
//!
//! The handles ([`ResidentPoints`] tells of them) have the dispatcher's operations. [`Held`] knows where the data lies and whether it is to cross,
//! [`Holds`] is what a device does with it, and [`Task`] how the dispatcher runs it: with the host's data on the processor's engines.

mod calls;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod held;

pub use calls::{ResidentLayer, ResidentPoints, ResidentRows};
pub use device::Holds;
pub(super) use held::Held;

use super::engine::{Able, Device};
use super::work::Work;
use super::{Engine, Job};
use tercet_host::engine::Fault;

/// What the dispatcher runs: work that a device may do in a way of its own.
pub(super) trait Task<D: Device> {
    /// What comes of it.
    type Done;

    /// How much it is.
    fn job(&self) -> Job;

    /// As [`Work::scratch`].
    fn scratch(&self) -> usize;

    /// Engines that are not to do it, a bit each.
    fn without(&self) -> u8 {
        0
    }

    /// Does it with the host's data.
    fn on_host<E: Able>(&mut self, engine: &mut E) -> Result<Self::Done, Fault>;

    /// Does it on the device.
    fn on_device(&mut self, device: &mut D) -> Result<Self::Done, Fault>;
}

/// Work that every engine does alike.
pub(super) struct Alike<W>(pub(super) W);

impl<D: Device, W: Work> Task<D> for Alike<W> {
    type Done = W::Done;

    fn job(&self) -> Job {
        self.0.job()
    }

    fn scratch(&self) -> usize {
        self.0.scratch()
    }

    fn on_host<E: Able>(&mut self, engine: &mut E) -> Result<W::Done, Fault> {
        self.0.run(engine)
    }

    fn on_device(&mut self, device: &mut D) -> Result<W::Done, Fault> {
        self.0.run(device)
    }
}

/// Work on data that may lie on the device.
struct There<'h, T, W, L, R> {
    work: W,
    held: &'h Held<T>,
    job: Job,
    without: u8,
    /// Brings the data there.
    load: L,
    /// Does the work with it.
    run: R,
}

impl<D, T, W, L, R> Task<D> for There<'_, T, W, L, R>
where
    D: Device,
    W: Work,
    L: FnMut(&mut D) -> Result<T, Fault>,
    R: FnMut(&mut W, &mut D, &T) -> Result<W::Done, Fault>,
{
    type Done = W::Done;

    fn job(&self) -> Job {
        self.job
    }

    fn scratch(&self) -> usize {
        self.work.scratch()
    }

    fn without(&self) -> u8 {
        self.without
    }

    fn on_host<E: Able>(&mut self, engine: &mut E) -> Result<W::Done, Fault> {
        self.work.run(engine)
    }

    fn on_device(&mut self, device: &mut D) -> Result<W::Done, Fault> {
        let there = self.held.load(device, &mut self.load)?;
        (self.run)(&mut self.work, device, &there)
    }
}

/// The device among engines, as [`Task::without`] has them.
const DEVICE: u8 = 1 << Engine::Cuda as u8;
