//! Several devices as one engine.

mod across;
mod exchange;

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use super::driver;
use super::{Cuda, CudaError, CudaOptions};

pub use exchange::Exchange;
pub(super) use exchange::{Link, Links};

pub(super) use across::{across, meet};

/// Minimum number of values per device, unless [`Cudas::with_least`] sets another.
const LEAST: usize = 1 << 20;

/// Several CUDA devices as one engine, with the same bits as one device.
///
/// Each operation is split into equal shares, one for each device (they are assumed to be alike), which work at the
/// same time:
///
/// | operation | a share | exchanged between devices |
/// |---|---|---|
/// | k-means | points; centroids are on every device | sums and counts of clusters, then centroids |
/// | search | rows | nothing; the host merges hits in core's order |
/// | quantizing | groups; of one long group its values | nothing; the host merges exact statistics |
/// | histograms | values | nothing; the host adds counters |
/// | blocks, palettes | blocks, groups of rows | nothing |
/// | layers | rows of weights | nothing |
///
/// Small work runs only on the first devices, or only on the first one. All sums over devices are sums of integers, so
/// results do not depend on the number of devices.
///
/// The data of [`Cudas::points`], [`Cudas::layer`], [`Cudas::palette`] and a base to search stays on the devices.
///
/// # How sums are exchanged
///
/// Every device owns an equal part of the clusters. It receives the sums and counts of these from all devices, moves
/// their centroids and sends them to all devices. For k clusters of d coordinates on D devices, each device receives
/// 8·k·d·(D − 1)/D bytes of sums per step, and an eighth of that in centroids, with every way of exchange
/// ([`Cudas::with_exchange`]). Sending the sums of all clusters to all devices would take sixteen times the centroids.
/// The ways differ in the work of the host:
///
/// | way | the host queues per step | best |
/// |---|---|---|
/// | [`Exchange::Nccl`] | three collectives, of one kernel on each device | with four devices or more; with tables of MiBs; if some devices do not reach each other |
/// | [`Exchange::Peer`] | 3·D·(D − 1) copies and 4·D² marks and waits, some microseconds each | with two devices, three with small tables: no kernels meet |
/// | [`Exchange::Host`] | as many copies out and in, and waits for each | if neither of the others is available |
///
/// NCCL's rings use every link in both directions at once, and NVLink switches add the sums on the way. Between devices
/// without access to each other its kernels pass data on in pieces, while copies by the host wait for each other. NCCL
/// costs a start of up to seconds for each number of participating devices, device memory beside the engine's pools,
/// and the host's thread, which polls while NCCL runs, because a lost device would let the others wait forever. A table
/// of 1024 × 256 is 2 MiB, which takes tens of microseconds beside an assignment of milliseconds: the way matters if
/// k·d is close to the number of values of a share. This is reasoning; none of it was measured.
///
/// NCCL accepts each device once, so if a device occurs twice, copies are used.
///
/// # Failures
///
/// A failure of one device is [`CudaError::OnDevice`], which names it. A failure of NCCL itself is [`CudaError::Nccl`].
/// [`CudaError::OutOfMemory`] on one device is an error of the engine: shares are not moved to other devices, which are
/// equally full. After [`CudaError::Lost`] on one device, make a new engine from the others.
///
/// ```
/// use tercet_core::cluster::{Kmeans, Points, Steps, Update, kmeans};
/// use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
/// use tercet_gpu::engine::{CudaError, Cudas};
///
/// fn two_groups(values: &[i8]) -> Result<[i8; 2], CudaError> {
///     let mut cudas = Cudas::all()?;
///     // State is on the devices: the caller's buffers may be empty.
///     let nothing = Buffers {
///         labels: &mut [], distances: &mut [], centroids: &mut [], kept: &mut [],
///         norms: &mut [], sums: &mut [], counts: &mut [],
///     };
///     let mut clusters = cudas.clusters(Points::new(values, 1)?, 2, Update::Mean, nothing)?;
///     kmeans(&mut clusters, &Kmeans::default(), &mut Steps::Full, &mut |_, _, _| ())?;
///     let mut centroids = [0; 2];
///     clusters.read_centroids(&mut centroids)?;
///     centroids.sort();
///     Ok(centroids)
/// }
///
/// match two_groups(&[0, 1, 2, 50, 51, 52]) {
///     Ok(centroids) => assert_eq!(centroids, [1, 51]),
///     Err(error) => println!("not on GPUs: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct Cudas {
    // Before the devices, because NCCL's communicators must end first.
    pub(super) links: Links,
    pub(super) devices: Vec<Cuda>,
    least: usize,
}

impl Cudas {
    /// Opens all devices that kernels run on, each with [`CudaOptions::default`].
    ///
    /// # Errors
    /// As [`Cudas::new`]; [`CudaError::OldDevice`] if all devices are too old.
    pub fn all() -> Result<Self, CudaError> {
        let mut devices = Vec::new();
        let mut old = None;
        for device in 0..driver::device_count()? {
            let options = CudaOptions {
                device,
                ..CudaOptions::default()
            };
            match Cuda::new(&options) {
                Ok(cuda) => devices.push(cuda),
                Err(error @ CudaError::OldDevice { .. }) => old = Some(error.on(device)),
                Err(error) => return Err(error.on(device)),
            }
        }
        match old {
            Some(error) if devices.is_empty() => Err(error),
            _ => Self::of(devices),
        }
    }

    /// Opens the devices of `options`, in this order, at least one. A device may occur more than once, each time with
    /// its own memory pool.
    ///
    /// # Errors
    /// [`CudaError::NoDevice`] without options; those of [`Cuda::new`], with the device concerned.
    pub fn new(options: &[CudaOptions]) -> Result<Self, CudaError> {
        let made = options
            .iter()
            .map(|options| Cuda::new(options).map_err(|error| error.on(options.device)));
        Self::of(made.collect::<Result<_, _>>()?)
    }

    fn of(devices: Vec<Cuda>) -> Result<Self, CudaError> {
        if devices.is_empty() {
            let (ordinal, count) = (0, 0);
            return Err(CudaError::NoDevice { ordinal, count });
        }
        Ok(Self {
            links: Links::new(&devices)?,
            devices,
            least: LEAST,
        })
    }

    /// True if buffers of these sizes in bytes could be allocated now on every device, as [`Cuda::can_allocate`] does
    /// for one. Data that is shared among devices takes less on each.
    ///
    /// # Errors
    /// Those of [`Cuda::can_allocate`], with the device concerned.
    pub fn can_allocate(&self, bytes: &[usize]) -> Result<bool, CudaError> {
        for cuda in &self.devices {
            if !cuda.named(cuda.can_allocate(bytes))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until all devices have done their work.
    ///
    /// # Errors
    /// Those of [`Cuda::synchronize`], with the device concerned.
    pub(crate) fn synchronize(&mut self) -> Result<(), CudaError> {
        let all = vec![(); self.devices.len()];
        self.each(all, |cuda, ()| cuda.synchronize())?;
        Ok(())
    }

    /// Copies bytes to the first device and back.
    ///
    /// # Errors
    /// Those of [`Cuda::upload`] and [`Cuda::read`].
    pub(crate) fn copy_by_first(&mut self, bytes: &mut [u8]) -> Result<(), CudaError> {
        // There is at least one device, and one share.
        self.each([bytes], |cuda, bytes| {
            let there = cuda.upload(bytes)?;
            cuda.read(&there, bytes)
        })?;
        Ok(())
    }

    /// Sets the minimum number of values per device, 2²⁰ by default: less work uses fewer devices.
    #[must_use]
    pub const fn with_least(mut self, values: usize) -> Self {
        self.least = values;
        self
    }

    /// Sets the way in which k-means exchanges sums and centroids between devices, [`Exchange::Auto`] by default.
    #[must_use]
    pub const fn with_exchange(mut self, exchange: Exchange) -> Self {
        self.links.choice = exchange;
        self
    }

    /// Returns the way in which sums and centroids are exchanged between all devices: never [`Exchange::Auto`]. To
    /// decide that, it looks for NCCL and makes its communicators (up to seconds, once).
    ///
    /// For one device it is [`Exchange::Peer`]: nothing is exchanged. If NCCL is installed but not used, the error of
    /// `with_exchange(Exchange::Nccl)` gives the reason.
    ///
    /// # Errors
    /// [`CudaError::Nccl`] if NCCL is required and fails.
    pub fn exchange(&mut self) -> Result<Exchange, CudaError> {
        let link = self.links.between(&self.devices, self.devices.len())?;
        Ok(link.way())
    }

    /// Returns the devices, in the order of their shares.
    pub fn devices(&self) -> &[Cuda] {
        &self.devices
    }

    /// Splits `items` of `each` values into equal shares; each except the last is a multiple of `unit` items. There is
    /// at least one share, and at most one per device. None is empty unless there are no items.
    pub(super) fn shares(&self, items: usize, unit: usize, each: usize) -> Vec<Range<usize>> {
        let unit = unit.max(1);
        let units = items.div_ceil(unit);
        let least = self.least.div_ceil(unit.saturating_mul(each).max(1)).max(1);
        let count = (units / least).clamp(1, self.devices.len());
        let start = |share: usize| {
            let units = share * (units / count) + share.min(units % count);
            units.saturating_mul(unit).min(items)
        };
        (0..count)
            .map(|share| start(share)..start(share + 1))
            .collect()
    }

    /// Lets each device do its share of `shares`, all at the same time; returns the results in order. The error is that
    /// of the first share that fails.
    pub(super) fn each<S: Send, R: Send>(
        &mut self,
        shares: impl IntoIterator<Item = S>,
        work: impl Fn(&mut Cuda, S) -> Result<R, CudaError> + Sync,
    ) -> Result<Vec<R>, CudaError> {
        at_once(self.devices.iter_mut().zip(shares), |(cuda, share)| {
            let done = work(cuda, share);
            cuda.named(done)
        })
    }
}

impl Cuda {
    /// Adds this device to the error of a result.
    pub(super) fn named<R>(&self, result: Result<R, CudaError>) -> Result<R, CudaError> {
        result.map_err(|error| error.on(self.context.ordinal()))
    }
}

/// Calls `work` with every share, each on its own thread, and the first on this one.
///
/// A thread queues work for its own device and waits for it, so that all devices are busy.
pub(super) fn at_once<S: Send, R: Send>(
    shares: impl IntoIterator<Item = S>,
    work: impl Fn(S) -> Result<R, CudaError> + Sync,
) -> Result<Vec<R>, CudaError> {
    let mut shares = shares.into_iter();
    let Some(first) = shares.next() else {
        return Ok(Vec::new());
    };
    thread::scope(|scope| {
        let others = shares.map(|share| scope.spawn(|| work(share)));
        // All of them begin before the first share.
        let others: Vec<_> = others.collect();
        let first = work(first);
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    })
}

/// Splits a slice into parts of these lengths.
pub(super) fn cut<T>(mut rest: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lengths
        .map(|len| {
            let len = len.min(rest.len());
            rest.split_off_mut(..len).unwrap_or_default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_cut_in_order() {
        let mut values = [1, 2, 3, 4, 5];
        let parts = cut(&mut values, [2, 0, 9].into_iter());
        assert_eq!(parts, [&[1, 2][..], &[], &[3, 4, 5]]);
    }

    #[test]
    fn work_is_done_side_by_side_and_told_in_order() {
        // Each waits for the others.
        let meeting = std::sync::Barrier::new(3);
        let done = at_once(0..3, |share| {
            meeting.wait();
            Ok(10 * share)
        });
        assert_eq!(done, Ok(vec![0, 10, 20]));
        let none: Result<Vec<()>, _> = at_once(std::iter::empty::<()>(), |()| Ok(()));
        assert_eq!(none, Ok(Vec::new()));
        let failed = at_once(0..3, |share| {
            let len = CudaError::Length {
                expected: share,
                found: 0,
            };
            if share > 0 { Err(len) } else { Ok(()) }
        });
        let (expected, found) = (1, 0);
        assert_eq!(failed, Err(CudaError::Length { expected, found }));
    }
}
