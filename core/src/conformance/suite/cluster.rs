//! Clustering on any engine: seeding, Lloyd's loop, mini-batches, spheres, weights.

use super::Digest;
use crate::cluster::{
    Init, Kmeans, Lloyd, Points, Steps, Update, float, kmeans, normalize, normalize_floats,
};
use crate::engine::{Buffers, ClusterEngine, ClusterProblem};
use crate::number::Random;

/// Number of points of a case.
const POINTS: usize = 48;
/// Largest numbers of coordinates and of clusters of a case.
const DIMS: usize = 7;
const CLUSTERS: usize = 9;

/// Families of points.
#[derive(Clone, Copy)]
enum Cloud {
    /// All int8 values, spread evenly.
    Even,
    /// Five tight groups: clusters become empty.
    Groups,
    /// Coordinates −128, 0 and 127.
    Ends,
    /// Few values, so that distances tie.
    Ties,
    /// One point, many times: there is no second seed.
    Same,
}

const CLOUDS: [Cloud; 5] = [
    Cloud::Even,
    Cloud::Groups,
    Cloud::Ends,
    Cloud::Ties,
    Cloud::Same,
];

impl Cloud {
    fn fill(self, dims: usize, out: &mut [i8]) {
        let mut random = Random::new(self as u64 + 40);
        for row in out.chunks_exact_mut(dims.max(1)) {
            let group = random.below(5) as i64;
            for x in row {
                let draw = random.next_u64() >> 32;
                *x = match self {
                    Self::Even => draw as i8,
                    Self::Groups => (group * 50 - 100 + (draw % 5) as i64) as i8,
                    Self::Ends => [-128, 0, 127][(draw % 3) as usize],
                    Self::Ties => (draw % 4) as i8,
                    Self::Same => -77,
                };
            }
        }
    }
}

/// Shapes: numbers of points, coordinates and clusters.
const SHAPES: [(usize, usize, usize); 5] = [
    (POINTS, DIMS, CLUSTERS),
    (POINTS, 1, 4),
    (31, 3, 8),
    (9, 5, 9),
    (1, 2, 1),
];

pub(super) fn run<E: ClusterEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    report("cluster/greedy", seeded(engine, Init::Greedy));
    report("cluster/plus_plus", seeded(engine, Init::PlusPlus));
    report("cluster/random", seeded(engine, Init::Random));
    report("cluster/restarts", restarts(engine));
    report("cluster/weighted", weighted(engine));
    report("cluster/mini_batch", mini_batch(engine));
    report("cluster/spherical", spherical(engine));
    report("cluster/refuse", refused(engine));
    report("cluster/nearest", nearest(engine));
}

/// The caller's buffers of a problem.
struct Memory {
    labels: [u32; POINTS],
    distances: [u32; POINTS],
    centroids: [i8; DIMS * CLUSTERS],
    kept: [i8; DIMS * CLUSTERS],
    norms: [i32; CLUSTERS],
    sums: [i64; DIMS * CLUSTERS],
    counts: [u64; CLUSTERS],
}

impl Memory {
    const fn new() -> Self {
        Self {
            labels: [0; POINTS],
            distances: [0; POINTS],
            centroids: [0; DIMS * CLUSTERS],
            kept: [0; DIMS * CLUSTERS],
            norms: [0; CLUSTERS],
            sums: [0; DIMS * CLUSTERS],
            counts: [0; CLUSTERS],
        }
    }

    fn buffers(&mut self, points: usize, dims: usize, k: usize) -> Option<Buffers<'_>> {
        let table = k * dims;
        Some(Buffers {
            labels: self.labels.get_mut(..points)?,
            distances: self.distances.get_mut(..points)?,
            centroids: self.centroids.get_mut(..table)?,
            kept: self.kept.get_mut(..table)?,
            norms: self.norms.get_mut(..k)?,
            sums: self.sums.get_mut(..table)?,
            counts: self.counts.get_mut(..k)?,
        })
    }
}

/// Given centroids, also more of them than points; shapes that do not fit return errors.
#[inline(never)]
fn nearest<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut find = |points: Points<'_>, centroids: &[i8], count: usize| {
        let (mut labels, mut distances) = ([0; POINTS], [0; POINTS]);
        let (Some(labels), Some(distances)) = (labels.get_mut(..count), distances.get_mut(..count))
        else {
            return;
        };
        if digest
            .outcome(engine.nearest(points, centroids, labels, distances))
            .is_some()
        {
            for (label, distance) in labels.iter().zip(distances) {
                digest.u64(u64::from(*label) << 32 | u64::from(*distance));
            }
        }
    };
    for cloud in CLOUDS {
        for (points, dims, k) in [(POINTS, DIMS, CLUSTERS), (31, 3, 8), (1, 2, 24), (9, 5, 1)] {
            let (mut values, mut centroids) = ([0; POINTS * DIMS], [0; DIMS * CLUSTERS]);
            let (Some(values), Some(centroids)) = (
                values.get_mut(..points * dims),
                centroids.get_mut(..k * dims),
            ) else {
                continue;
            };
            cloud.fill(dims, values);
            Cloud::Even.fill(dims, centroids);
            let Ok(all) = Points::new(values, dims) else {
                continue;
            };
            find(all, centroids, points);
            find(all, &[], points);
            find(all, centroids, points - 1);
        }
    }
    digest.value()
}

/// Runs k-means and digests the inertia of each step, the outcome and everything that can be read.
#[inline(never)]
fn cluster<E: ClusterEngine>(
    engine: &mut E,
    points: Points<'_>,
    k: usize,
    update: Update,
    options: &Kmeans,
    steps: &mut Steps<'_>,
    digest: &mut Digest,
) {
    let mut memory = Memory::new();
    let Some(buffers) = memory.buffers(points.len(), points.dims(), k) else {
        return;
    };
    let mut curve = Digest::new();
    let done = engine
        .clusters(points, k, update, buffers)
        .and_then(|mut clusters| {
            let mut observe = |restart, step, inertia| {
                curve.u64(u64::from(restart));
                curve.u64(u64::from(step));
                curve.u64(inertia);
            };
            let outcome = kmeans(&mut clusters, options, steps, &mut observe)?;
            read(&mut clusters, digest)?;
            Ok(outcome)
        });
    digest.u64(curve.value());
    if let Some(outcome) = digest.outcome(done) {
        digest.u64(outcome.inertia);
        digest.u64(u64::from(outcome.iterations));
        digest.u64(outcome.stop as u64);
        digest.u64(outcome.reseeded);
        digest.u64(outcome.empty as u64);
    }
}

/// Does [`cluster`] with means.
fn plain<E: ClusterEngine>(
    engine: &mut E,
    points: Points<'_>,
    k: usize,
    options: &Kmeans,
    steps: &mut Steps<'_>,
    digest: &mut Digest,
) {
    cluster(engine, points, k, Update::Mean, options, steps, digest);
}

#[inline(never)]
fn read<P: ClusterProblem>(clusters: &mut P, digest: &mut Digest) -> Result<(), P::Error> {
    let shape = clusters.shape();
    let table = shape.clusters * shape.dims;
    let mut words = [0u32; POINTS];
    if let Some(words) = words.get_mut(..shape.points) {
        clusters.read_labels(words)?;
        for &label in words.iter() {
            digest.u64(u64::from(label));
        }
        clusters.read_distances(words)?;
        for &distance in words.iter() {
            digest.u64(u64::from(distance));
        }
    }
    let mut centroids = [0i8; DIMS * CLUSTERS];
    if let Some(centroids) = centroids.get_mut(..table) {
        clusters.read_centroids(centroids)?;
        digest.i8s(centroids);
    }
    let (mut sums, mut counts) = ([0i64; DIMS * CLUSTERS], [0u64; CLUSTERS]);
    let (Some(sums), Some(counts)) = (sums.get_mut(..table), counts.get_mut(..shape.clusters))
    else {
        return Ok(());
    };
    clusters.read_sums(sums, counts)?;
    let mut means = [0.0; DIMS * CLUSTERS];
    if let Some(means) = means.get_mut(..table) {
        let _ = crate::cluster::means(sums, counts, means);
        digest.f32s(means);
    }
    Ok(())
}

/// Calls `each` with every cloud in every shape.
fn for_each(each: &mut dyn FnMut(Points<'_>, usize)) {
    let mut values = [0; POINTS * DIMS];
    for cloud in CLOUDS {
        for (points, dims, k) in SHAPES {
            let Some(values) = values.get_mut(..points * dims) else {
                continue;
            };
            cloud.fill(dims, values);
            if let Ok(points) = Points::new(values, dims) {
                each(points, k);
            }
        }
    }
}

fn options(init: Init) -> Kmeans {
    Kmeans {
        init,
        seed: 11,
        ..Kmeans::default()
    }
}

#[inline(never)]
fn seeded<E: ClusterEngine>(engine: &mut E, init: Init) -> u64 {
    let mut digest = Digest::new();
    for_each(&mut |points, k| {
        let steps = &mut Steps::Full;
        plain(engine, points, k, &options(init), steps, &mut digest);
    });
    digest.value()
}

#[inline(never)]
fn restarts<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let options = Kmeans {
        restarts: 4,
        lloyd: Lloyd {
            max_iter: 3,
            tol_ppm: 20_000,
        },
        ..options(Init::Random)
    };
    for_each(&mut |points, k| {
        let steps = &mut Steps::Full;
        plain(engine, points, k, &options, steps, &mut digest);
    });
    digest.value()
}

#[inline(never)]
fn weighted<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut weights = [0; POINTS];
    let mut random = Random::new(5);
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight = match index % 7 {
            6 => 0,
            5 => 1 << 20,
            _ => random.below(9) as u32,
        };
    }
    for_each(&mut |points, k| {
        let Some(weights) = weights.get(..points.len()) else {
            return;
        };
        let weighted = Points::weighted(points.values(), points.dims(), weights);
        if let Some(points) = digest.outcome(weighted) {
            let steps = &mut Steps::Full;
            let options = options(Init::Greedy);
            plain(engine, points, k, &options, steps, &mut digest);
        }
    });
    digest.value()
}

#[inline(never)]
fn mini_batch<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let options = Kmeans {
        lloyd: Lloyd {
            max_iter: 5,
            tol_ppm: 0,
        },
        ..options(Init::PlusPlus)
    };
    for cap in [6, 1 << 23] {
        for_each(&mut |points, k| {
            let mut batch = [0; 10];
            let steps = &mut Steps::Batches {
                batch: &mut batch,
                cap,
            };
            plain(engine, points, k, &options, steps, &mut digest);
        });
    }
    digest.value()
}

#[inline(never)]
fn spherical<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    for_each(&mut |points, k| {
        let mut values = [0; POINTS * DIMS];
        let Some(values) = values.get_mut(..points.values().len()) else {
            return;
        };
        values.copy_from_slice(points.values());
        let Some(sphere) = digest.outcome(normalize(values, points.dims())) else {
            return;
        };
        digest.f64(sphere.squared_radius());
        let Some(points) = digest.outcome(Points::new(values, points.dims())) else {
            return;
        };
        let (steps, update) = (&mut Steps::Full, Update::Sphere(sphere));
        let options = Kmeans {
            lloyd: Lloyd {
                max_iter: 12,
                tol_ppm: 0,
            },
            ..options(Init::Greedy)
        };
        cluster(engine, points, k, update, &options, steps, &mut digest);
    });
    digest.value()
}

#[inline(never)]
fn refused<E: ClusterEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let values = [1, 2, 3, 4, 5, 6];
    digest.outcome(Points::new(&values, 4));
    digest.outcome(Points::new(&values, 0));
    digest.outcome(Points::new(&[], 1));
    digest.outcome(Points::weighted(&values, 2, &[0, 0, 0]));
    digest.outcome(Points::weighted(&values, 2, &[1, 2]));
    digest.outcome(Points::weighted(&values, 6, &[u32::MAX]));
    let Ok(points) = Points::new(&values, 2) else {
        return digest.value();
    };
    for k in [0, 4] {
        let steps = &mut Steps::Full;
        plain(
            engine,
            points,
            k,
            &options(Init::Greedy),
            steps,
            &mut digest,
        );
    }
    for (cap, len) in [(1, 2), ((1 << 24) + 1, 2), (1 << 24, 2), (2, 0)] {
        let mut batch = [0; 2];
        let steps = &mut Steps::Batches {
            batch: batch.get_mut(..len).unwrap_or_default(),
            cap,
        };
        plain(
            engine,
            points,
            2,
            &options(Init::Greedy),
            steps,
            &mut digest,
        );
    }
    digest.value()
}

/// Float points on a sphere, and a float inertia.
#[inline(never)]
pub(super) fn floats() -> u64 {
    let mut digest = Digest::new();
    super::input::for_each(6, &mut |values| {
        let mut codes = [0; super::input::MAX];
        let Some(codes) = codes.get_mut(..values.len()) else {
            return;
        };
        if let Some(sphere) =
            digest.outcome(normalize_floats(values, 1.max(values.len() / 5), codes))
        {
            digest.f64(sphere.squared_radius());
            digest.i8s(codes);
        }
        for weights in [None, Some(&[3u32, 0, 1, 7, 2][..])] {
            let labelled = float::Labelled {
                values,
                dims: values.len() / 5,
                weights,
                labels: &[0, 1, 1, 0, 1],
                centroids: values,
            };
            if let Some(inertia) = digest.outcome(float::inertia(&labelled)) {
                digest.f64(inertia);
            }
        }
    });
    digest.value()
}
