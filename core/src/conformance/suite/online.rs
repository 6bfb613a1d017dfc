//! Clustering as on small machines: streams, and Lloyd's loop with 32-bit sums.

use super::Digest;
use crate::cluster::{ClusterError, Init, Kmeans, Online, Outcome, Points, Steps, Update, kmeans};
use crate::engine::Buffers;
use crate::number::Random;
use crate::scalar::Clusters;

/// Number of points of a stream.
const STREAM: usize = 300;

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("cluster/online/8x6", small());
    report("cluster/online/16x64", large());
    report("cluster/online/forget", forget());
    report("cluster/lloyd/8x6", lloyd());
}

#[inline(never)]
fn small() -> u64 {
    online(&mut Online::<8, 6>::new())
}

#[inline(never)]
fn large() -> u64 {
    online(&mut Online::<16, 64>::new())
}

#[inline(never)]
fn lloyd() -> u64 {
    Memory::new().run()
}

/// Writes point `index` of a stream: groups that drift, extreme int8 points, repeats.
fn point<const D: usize>(random: &mut Random, index: usize, x: &mut [i8; D]) {
    let draw = random.next_u64();
    match draw % 16 {
        // The last point again.
        0 => {}
        1 => x.fill(i8::MIN),
        2 => x.fill(i8::MAX),
        group => {
            let centre = group as i64 * 15 - 128 + index as i64 / 32;
            for x in x {
                *x = (centre + random.below(9) as i64).clamp(-128, 127) as i8;
            }
        }
    }
}

/// Runs new clusters over a fixed stream and digests their observations and final state. `cluster/online/KxD` of the
/// table is this digest for two sizes.
///
/// For a program with its own place for the state.
pub fn online<const K: usize, const D: usize>(clusters: &mut Online<K, D>) -> u64 {
    let mut digest = Digest::new();
    stream(clusters, &mut digest);
    digest.value()
}

fn stream<const K: usize, const D: usize>(clusters: &mut Online<K, D>, digest: &mut Digest) {
    let mut random = Random::new(60);
    let mut x = [0; D];
    for index in 0..STREAM {
        point(&mut random, index, &mut x);
        let seen = clusters.observe(&x);
        digest.u64(u64::from(seen.label) << 32 | u64::from(seen.distance));
        digest.bytes(&[u8::from(seen.seed)]);
    }
    for centroid in clusters.centroids() {
        digest.i8s(centroid);
        if let Some(near) = clusters.predict(centroid) {
            digest.u64(u64::from(near.label));
        }
    }
    for (sums, &count) in clusters.sums().iter().zip(clusters.counts()) {
        digest.u64(count.into());
        for sum in sums {
            digest.bytes(&sum.to_le_bytes());
        }
    }
}

#[inline(never)]
fn forget() -> u64 {
    let mut digest = Digest::new();
    for cap in [0, 1, 2, 3, 7, 1 << 24, (1 << 24) + 1] {
        let mut clusters = Online::<5, 3>::new();
        if digest.outcome(clusters.set_cap(cap)).is_some() {
            stream(&mut clusters, &mut digest);
        }
    }
    for weight in [0, 1, 9, (1 << 24) - 1, 1 << 24] {
        let seeds = [[-128; 3], [127; 3], [0, 1, -1]];
        if let Some(mut clusters) = digest.outcome(Online::with_centroids(seeds, weight)) {
            stream(&mut clusters, &mut digest);
        }
    }
    digest.value()
}

/// Number of points of [`Memory`].
pub(super) const POINTS: usize = 96;
pub(super) const DIMS: usize = 6;
const CLUSTERS: usize = 8;

/// All memory of Lloyd's loop over 96 points of 6 coordinates in 8 clusters: 1,680 bytes, with 32-bit sums.
#[derive(Debug)]
pub struct Memory {
    values: [i8; POINTS * DIMS],
    labels: [u32; POINTS],
    distances: [u32; POINTS],
    centroids: [i8; CLUSTERS * DIMS],
    norms: [i32; CLUSTERS],
    sums: [i32; CLUSTERS * DIMS],
    counts: [u64; CLUSTERS],
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// Returns all zeros.
    pub const fn new() -> Self {
        Self {
            values: [0; POINTS * DIMS],
            labels: [0; POINTS],
            distances: [0; POINTS],
            centroids: [0; CLUSTERS * DIMS],
            norms: [0; CLUSTERS],
            sums: [0; CLUSTERS * DIMS],
            counts: [0; CLUSTERS],
        }
    }

    /// Creates the points, clusters them from greedy seeds and digests the result: `cluster/lloyd/8x6` of the table.
    pub fn run(&mut self) -> u64 {
        let mut random = Random::new(61);
        let mut x = [0; DIMS];
        for (index, row) in self.values.chunks_exact_mut(DIMS).enumerate() {
            point(&mut random, index, &mut x);
            for (to, from) in row.iter_mut().zip(x) {
                *to = from;
            }
        }
        let mut digest = Digest::new();
        self.digest(Init::Greedy, &mut digest);
        digest.value()
    }

    /// Returns the points' coordinates.
    pub(super) const fn values(&self) -> &[i8] {
        &self.values
    }

    /// Returns the points' coordinates, mutably.
    pub(super) const fn values_mut(&mut self) -> &mut [i8] {
        &mut self.values
    }

    /// Clusters the points and digests the result.
    pub(super) fn digest(&mut self, init: Init, digest: &mut Digest) {
        if let Ok(outcome) = self.cluster(init) {
            digest.u64(outcome.inertia);
            digest.u64(outcome.iterations.into());
            digest.u64(outcome.stop as u64);
            digest.u64(outcome.reseeded);
        }
        for word in self.labels.iter().chain(&self.distances) {
            digest.bytes(&word.to_le_bytes());
        }
        digest.i8s(&self.centroids);
    }

    fn cluster(&mut self, init: Init) -> Result<Outcome, ClusterError> {
        let buffers = Buffers {
            labels: &mut self.labels,
            distances: &mut self.distances,
            centroids: &mut self.centroids,
            kept: &mut [],
            norms: &mut self.norms,
            sums: &mut self.sums,
            counts: &mut self.counts,
        };
        let points = Points::new(&self.values, DIMS)?;
        let mut clusters = Clusters::new(points, CLUSTERS, Update::Mean, buffers)?;
        let options = Kmeans {
            init,
            ..Kmeans::default()
        };
        kmeans(&mut clusters, &options, &mut Steps::Full, &mut |_, _, _| ())
    }
}
