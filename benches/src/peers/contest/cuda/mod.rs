//! Compares Tercet on the first CUDA device with its peers there, and with the processor.
//!
//! All data is in place before anything is timed. For Tercet and for the device's peers, whose times come from its own
//! events, it is on the device. For [`Threads`](tercet_host::parallel::Threads), which uses all threads, it is in
//! memory. Each case also has a bound: a copy within the device of as many bytes as the work must move, half of them
//! read and half written.

mod blocks;
mod cluster;
mod linear;
mod quantize;
mod search;

use super::{Event, Rival, TimedWork};
use std::io;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions, DeviceBuffer, DeviceInfo, Watch};

/// The name of Tercet's own CPU engine in tables.
const PROCESSOR: &str = "Tercet, processor";
/// The name of the bound in tables.
const COPY: &str = "copy on the device";

/// Returns every event. `quick` events have a few thousand values: they show that the work succeeds, also on the
/// emulated device.
pub fn events(quick: bool) -> Vec<Event> {
    let mut events = quantize::events(quick);
    events.extend(blocks::events(quick));
    events.extend(linear::events(quick));
    events.extend(cluster::events(quick));
    events.extend(search::events(quick));
    events
}

/// Returns the device that takes part.
///
/// # Errors
/// No device works; the error is one line.
pub fn device() -> io::Result<DeviceInfo> {
    let info = Cuda::first().and_then(|cuda| cuda.device_info());
    info.map_err(io::Error::other)
}

/// A contender's engine, and its clock.
struct Device {
    cuda: Cuda,
    watch: Watch,
}

impl Device {
    fn first() -> io::Result<Self> {
        Self::with(&CudaOptions::default())
    }

    fn with(options: &CudaOptions) -> io::Result<Self> {
        let made = Cuda::new(options).and_then(|cuda| {
            let watch = cuda.watch()?;
            Ok(Self { cuda, watch })
        });
        made.map_err(io::Error::other)
    }

    /// Returns the seconds that the device takes for the operations of `work`.
    fn time<R>(&mut self, work: impl FnOnce(&mut Cuda) -> Result<R, CudaError>) -> f64 {
        let timed = self.watch.time(|| work(&mut self.cuda).map(drop));
        f64::from(expect(timed).0) / 1e3
    }
}

/// Unwraps the result of an operation that succeeded before, or after whose failure nothing can be done.
fn expect<T>(done: Result<T, CudaError>) -> T {
    done.unwrap_or_else(|error| panic!("{error}"))
}

/// A copy within the device.
struct Copy {
    device: Device,
    from: DeviceBuffer<u32>,
    to: DeviceBuffer<u32>,
    /// Number of copies per phase.
    times: Vec<u32>,
}

impl Copy {
    /// Makes a copy that reads and writes `bytes` bytes in total; it is repeated for the steps of a case that has
    /// steps.
    fn rival(bytes: usize, steps: Option<[u32; 2]>) -> io::Result<Rival> {
        let mut device = Device::first()?;
        let words = (bytes / 8).max(1);
        let mut zeros = || device.cuda.zeros(words).map_err(io::Error::other);
        let (from, to) = (zeros()?, zeros()?);
        let work = Box::new(Self {
            device,
            from,
            to,
            times: steps.map_or(vec![1], Vec::from),
        });
        let label = COPY;
        Ok(Rival::Bound { label, work })
    }
}

impl TimedWork for Copy {
    fn run(&mut self, phase: usize) -> f64 {
        let Self {
            device, from, to, ..
        } = self;
        let times = self.times[phase];
        device.time(|cuda| (0..times).try_for_each(|_| cuda.copy(from, to)))
    }
}
