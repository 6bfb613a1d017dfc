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

/// Values that are worth a device of their own, unless [`Cudas::with_least`] says otherwise.
const LEAST: usize = 1 << 20;

/// Several CUDA devices as one engine, with the bits of one.
///
/// Each operation is cut into equal shares, one for each device (they are taken to be alike), which work at the same time:
///
/// | operation | a share | what crosses between devices |
/// |---|---|---|
/// | k-means | points; centroids are on every device | sums and counts of clusters, then centroids |
/// | search | rows | nothing; the host merges hits in core's order |
/// | quantizing | groups; of one long group its values | nothing; the host merges exact statistics |
/// | histograms | values | nothing; the host adds counters |
/// | blocks, palettes | blocks, groups of rows | nothing |
/// | layers | rows of weights | nothing |
///
/// What is too little to share runs on the first devices, or on the first alone. Everything that is added up over devices is an integer, so
/// results do not depend on their number.
///
/// [`Cudas::points`], [`Cudas::layer`], [`Cudas::palette`] and a base to search stay on the devices.
///
/// # How sums cross
///
/// Sums and counts of k-means are added where they belong: every device has an equal part of the clusters, gets the sums of these
/// over all devices, moves their centroids and sends them to all. For k clusters of d coordinates over D devices each takes in
/// 8·k·d·(D − 1)/D bytes of sums a step, and an eighth of that in centroids, by every way ([`Cudas::with_exchange`]); sums over
/// all and to all would be sixteen times the centroids. What differs is who does the work:
///
/// | way | for a step the host queues | and so wins |
/// |---|---|---|
/// | [`Exchange::Nccl`] | three collectives, of one kernel on each device | with four devices or more; with tables of MiBs; where some devices do not reach each other |
/// | [`Exchange::Peer`] | 3·D·(D − 1) copies and 4·D² marks and waits, some microseconds each | with two devices, three with small tables: no kernels meet |
/// | [`Exchange::Host`] | as many copies out and in, and waits for each | where there is neither of the others |
///
/// NCCL's rings use every link both ways at once, switches of NVLink add on the way, and between devices without access to each
/// other its kernels pass data on in pieces, where copies by the host wait for each other. It costs a start of up to seconds for
/// each number of devices that take part, memory of the devices beside the engine's pools, and the host's thread, which asks and
/// asks while it runs: a device that is lost would let the others wait for ever. A table of 1024 × 256 is 2 MiB, tens of
/// microseconds beside an assignment of milliseconds: the way matters where k·d comes near to the number of values of a share.
/// That is the argument; none of it was measured.
///
/// NCCL takes a device once, so that devices that come twice take copies.
///
/// # Failures
///
/// A failure of one device is [`CudaError::OnDevice`], which names it; one of NCCL that is no device's is [`CudaError::Nccl`].
/// [`CudaError::OutOfMemory`] on one is the engine's: shares are not moved to other devices, which are as full. After
/// [`CudaError::Lost`] on one, an engine of the others is made anew.
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
    // Before the devices: NCCL's communicators end first.
    pub(super) links: Links,
    pub(super) devices: Vec<Cuda>,
    least: usize,
}

impl Cudas {
    /// All devices that kernels run on, each as [`CudaOptions::default`] has it.
    ///
    /// # Errors
    /// As [`Cudas::new`]; [`CudaError::OldDevice`] where all are.
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

    /// The devices of `options`, in this order, at least one. A device may come more than once, with a pool of memory for each time.
    ///
    /// # Errors
    /// [`CudaError::NoDevice`] without options; those of [`Cuda::new`], with the device that they are about.
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

    /// Whether buffers of so many bytes each could be had now on every one of the devices, as [`Cuda::can_allocate`] tells of one. What is
    /// shared among them takes less of each.
    ///
    /// # Errors
    /// Those of [`Cuda::can_allocate`], with the device that they are about.
    pub fn can_allocate(&self, bytes: &[usize]) -> Result<bool, CudaError> {
        for cuda in &self.devices {
            if !cuda.named(cuda.can_allocate(bytes))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives a device no fewer values than this, 2²⁰ at first: less work than that is shared by fewer of them.
    #[must_use]
    pub const fn with_least(mut self, values: usize) -> Self {
        self.least = values;
        self
    }

    /// Has k-means' sums and centroids cross between devices by this way, [`Exchange::Auto`] at first.
    #[must_use]
    pub const fn with_exchange(mut self, exchange: Exchange) -> Self {
        self.links.choice = exchange;
        self
    }

    /// The way by which sums and centroids cross between all of the devices: not [`Exchange::Auto`], which it decides, so that
    /// NCCL is looked for and its communicators are made (up to seconds, once).
    ///
    /// Of one device it is [`Exchange::Peer`]: nothing crosses. Why NCCL is not used where it is installed is the error of `with_exchange(Exchange::Nccl)`.
    ///
    /// # Errors
    /// [`CudaError::Nccl`] where it must be NCCL and cannot.
    pub fn exchange(&mut self) -> Result<Exchange, CudaError> {
        let link = self.links.between(&self.devices, self.devices.len())?;
        Ok(link.way())
    }

    /// The devices, in the order of their shares.
    pub fn devices(&self) -> &[Cuda] {
        &self.devices
    }

    /// Cuts `items` of `each` values into equal shares, each but the last a multiple of `unit` items: one for each device at most, at least
    /// one, and none of them empty unless there are no items.
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

    /// Has each device do its share of `shares`, all at the same time; what they give, in order. The error is that of the first share
    /// that fails.
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
    /// A result whose error names this device.
    pub(super) fn named<R>(&self, result: Result<R, CudaError>) -> Result<R, CudaError> {
        result.map_err(|error| error.on(self.context.ordinal()))
    }
}

/// Does `work` with every share, each on a thread of its own, the first on this one.
///
/// A thread queues and waits for its own device, so that all of them are busy.
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
        // All of them begin before the first share does.
        let others: Vec<_> = others.collect();
        let first = work(first);
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    })
}

/// Cuts a slice into parts of these lengths.
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
