//! Tercet on the first CUDA device beside what else runs there, and beside the processor.
//!
//! Everyone's data is where it is worked on before anything is timed: on the device for Tercet and for the device's peers, whose
//! times are of its own events, in memory for [`Threads`](tercet_host::parallel::Threads), which has all threads. A copy within the device
//! of as many bytes as the work must move, half of them read and half written, is the bound beside each.

mod blocks;
mod cluster;
mod linear;
mod quantize;
mod search;

use super::{Event, Rival, Work};
use std::io;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions, DeviceBuffer, DeviceInfo, Watch};

/// How tables call Tercet's own CPU engine.
const PROCESSOR: &str = "Tercet, processor";
/// And the bound.
const COPY: &str = "copy on the device";

/// Every event. `quick` ones are of a few thousand values: they show that it works, the emulated device included.
pub fn events(quick: bool) -> Vec<Event> {
    let mut events = quantize::events(quick);
    events.extend(blocks::events(quick));
    events.extend(linear::events(quick));
    events.extend(cluster::events(quick));
    events.extend(search::events(quick));
    events
}

/// The device that takes part.
///
/// # Errors
/// Where there is none that works, in a line.
pub fn device() -> io::Result<DeviceInfo> {
    let info = Cuda::first().and_then(|cuda| cuda.device_info());
    info.map_err(io::Error::other)
}

/// A contender's own engine, and its clock.
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

    /// The seconds that the device takes for what `work` has it do.
    fn time<R>(&mut self, work: impl FnOnce(&mut Cuda) -> Result<R, CudaError>) -> f64 {
        let timed = self.watch.time(|| work(&mut self.cuda).map(drop));
        f64::from(expect(timed).0) / 1e3
    }
}

/// What cannot fail where the same was done before, or what nothing is left to do after.
fn expect<T>(done: Result<T, CudaError>) -> T {
    done.unwrap_or_else(|error| panic!("{error}"))
}

/// A copy within the device.
struct Copy {
    device: Device,
    from: DeviceBuffer<u32>,
    to: DeviceBuffer<u32>,
    /// How often, for each phase.
    times: Vec<u32>,
}

impl Copy {
    /// Of `bytes` in all, read and written; again and again for the steps of a case that has them.
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

impl Work for Copy {
    fn run(&mut self, phase: usize) -> f64 {
        let Self {
            device, from, to, ..
        } = self;
        let times = self.times[phase];
        device.time(|cuda| (0..times).try_for_each(|_| cuda.copy(from, to)))
    }
}
