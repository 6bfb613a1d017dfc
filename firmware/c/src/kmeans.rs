//! Lloyd's k-means in memory that C provides.

use tercet_core::cluster::{self, Init, Kmeans, Lloyd, Points, Steps, Stop, Update};
use tercet_core::engine::Buffers;
use tercet_core::pool::{Counts, Scope};
use tercet_core::scalar::Clusters;

use crate::Status;
use crate::assign::table;
use crate::buffer::{In, Out, apart};

/// The choice of the first centroids by `tercet_kmeans`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmeansInit {
    /// Greedy k-means++: each centroid is the best of 2 + ln k candidates, as in scikit-learn.
    Greedy = 0,
    /// k-means++ as published.
    PlusPlus = 1,
    /// Random distinct points.
    Random = 2,
}

/// The reason why `tercet_kmeans` ended.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmeansStop {
    /// No label changed.
    Labels = 0,
    /// Labels changed, but the inertia did not.
    Inertia = 1,
    /// The inertia fell by no more than the tolerance.
    Tolerance = 2,
    /// The maximum number of steps was reached.
    Iterations = 3,
}

/// The options of `tercet_kmeans`. If all but `max_iter` are zero, it does one complete run from greedy seeds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KmeansOptions {
    /// Seed of the random numbers: the same seed gives the same bits on every machine.
    pub seed: u64,
    /// A `tercet_kmeans_init`.
    pub init: u32,
    /// Number of runs, of which the best is returned; 0 counts as 1.
    pub restarts: u32,
    /// Maximum number of steps per run; 300 is usual.
    pub max_iter: u32,
    /// A run ends if a step lowers the inertia by no more than this many millionths of it.
    pub tol_ppm: u32,
}

/// The outcome of clustering.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KmeansOutcome {
    /// The sum of the squared distances.
    pub inertia: u64,
    /// Number of times that an empty cluster got the coordinates of a far point.
    pub reseeded: u64,
    /// Number of steps.
    pub iterations: u32,
    /// A `tercet_kmeans_stop`.
    pub stop: u32,
    /// Number of clusters without members, if there are fewer distinct points than clusters.
    pub empty: usize,
}

/// Maximum number of points: sums of 32 bits stay exact below 2^24.
const MAX_POINTS: usize = (1 << 24) - 1;

/// Clusters `n` points of `d` coordinates (n * d values, row by row) into `k` clusters, exactly: the same bits on
/// every machine.
///
/// Points: 1 to 2^24 - 1; k: 1 to n; d: 1 to 43,690. `options` may be null: one complete run with seed 0. Writes the
/// `centroids` (k * d), and the `labels` and the squared `distances` to them (n each). `scratch` holds at least
/// `TERCET_KMEANS_WORDS(k, d)` words with any content. `outcome` may be null. O(n * k * d) per step.
///
/// Returns TERCET_STATUS_SCRATCH if there are too few words, and TERCET_STATUS_ARGUMENT for a k or an init outside its
/// range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_kmeans(
    points: *const i8,
    n: usize,
    d: usize,
    k: usize,
    options: *const KmeansOptions,
    centroids: *mut i8,
    labels: *mut u32,
    distances: *mut u32,
    scratch: *mut u64,
    scratch_len: usize,
    outcome: *mut KmeansOutcome,
) -> Status {
    Status::of(|| {
        let points = In::new(points, table(n, d)?)?;
        let cells = table(k, d)?;
        let options = In::new(options, usize::from(!options.is_null()))?;
        let centroids = Out::new(centroids, cells)?;
        let (labels, distances) = (Out::new(labels, n)?, Out::new(distances, n)?);
        let scratch = Out::new(scratch, scratch_len)?;
        let outcome = Out::optional(outcome)?;
        let outputs = [
            centroids.span(),
            labels.span(),
            distances.span(),
            scratch.span(),
            outcome.span(),
        ];
        apart(outputs, [points.span(), options.span()])?;
        if n > MAX_POINTS {
            return Err(Status::Limit);
        }
        let options = if options.span().is_empty() {
            Kmeans::default()
        } else {
            // SAFETY: there is one, integers only; C vouches that it is there.
            run_of(unsafe { options.value() })?
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (centroids, scratch) = unsafe { (centroids.slice(), scratch.bytes()) };
        // SAFETY: as above.
        let (labels, distances) = unsafe { (labels.slice(), distances.slice()) };
        // SAFETY: as above.
        let points = unsafe { points.slice() };
        let mut counts = Counts::new();
        let mut scratch = Scope::over(scratch, 0, &mut counts);
        let none = |_| Status::Scratch;
        let kept = if options.restarts > 1 { cells } else { 0 };
        let buffers = Buffers {
            labels,
            distances,
            centroids,
            counts: scratch.alloc_slice(k, 0).map_err(none)?,
            sums: scratch.alloc_slice(cells, 0_i32).map_err(none)?,
            norms: scratch.alloc_slice(k, 0).map_err(none)?,
            kept: scratch.alloc_slice(kept, 0).map_err(none)?,
        };
        let points = Points::new(points, d)?;
        let mut clusters = Clusters::new(points, k, Update::Mean, buffers)?;
        let done = cluster::kmeans(&mut clusters, &options, &mut Steps::Full, &mut |_, _, _| ())?;
        let done = KmeansOutcome {
            inertia: done.inertia,
            reseeded: done.reseeded,
            iterations: done.iterations,
            stop: match done.stop {
                Stop::Labels => KmeansStop::Labels,
                Stop::Inertia => KmeansStop::Inertia,
                Stop::Tolerance => KmeansStop::Tolerance,
                Stop::Iterations => KmeansStop::Iterations,
            } as u32,
            empty: done.empty,
        };
        // SAFETY: as above.
        unsafe { outcome.set(done) };
        Ok(())
    })
}

fn run_of(options: &KmeansOptions) -> Result<Kmeans, Status> {
    const GREEDY: u32 = KmeansInit::Greedy as u32;
    const PLUS_PLUS: u32 = KmeansInit::PlusPlus as u32;
    const RANDOM: u32 = KmeansInit::Random as u32;
    Ok(Kmeans {
        init: match options.init {
            GREEDY => Init::Greedy,
            PLUS_PLUS => Init::PlusPlus,
            RANDOM => Init::Random,
            _ => return Err(Status::Argument),
        },
        restarts: options.restarts,
        lloyd: Lloyd {
            max_iter: options.max_iter,
            tol_ppm: options.tol_ppm,
        },
        seed: options.seed,
    })
}
