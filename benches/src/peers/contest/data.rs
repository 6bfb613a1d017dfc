//! The data of all participants: the same values on every machine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tercet_core::number::Random;
use tercet_host::measure::short;
use tercet_host::points::{Points, ReadOptions};

/// Returns random values, nearly normal with mean 0 and variance 1.
pub(super) fn normals(len: usize) -> Arc<[f32]> {
    let mut random = Random::new(7);
    (0..len).map(|_| random.normal()).collect()
}

/// Returns random codes of `low..=high`.
pub(super) fn codes(len: usize, low: i8, high: i8) -> Vec<i8> {
    let mut random = Random::new(9);
    let count = (i32::from(high) - i32::from(low) + 1) as u64;
    let code = |_| (random.below(count) as i32 + i32::from(low)) as i8;
    (0..len).map(code).collect()
}

/// Points, coordinates and clusters of the random sets.
pub(super) const SHAPES: [(usize, usize, usize); 4] = [
    (10_000, 100, 10),
    (100_000, 64, 64),
    (100_000, 128, 256),
    (1_000_000, 32, 16),
];

/// Standard deviation of the mixtures' centres; that of points around their centre is 1. So the normals overlap, and
/// Lloyd's loop takes tens of steps.
const SPREAD: f32 = 0.3;

/// Clusters of the embeddings.
const TOPICS: usize = 256;

/// Points and first centroids.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Name, such as `100K×64 k=64`.
    pub(super) name: String,
    /// Coordinates per point.
    pub(super) dims: usize,
    /// Number of clusters.
    pub(super) k: usize,
    /// The points, row-major.
    pub(super) values: Vec<f32>,
    /// Indices of the k points that are the first centroids, all different.
    pub(super) seeds: Vec<usize>,
}

impl Data {
    /// Makes `n` points from `k` normals (n if that is fewer) in equal parts; the same points on every machine.
    pub(super) fn mixture(n: usize, dims: usize, k: usize) -> Self {
        let k = k.min(n);
        let mut random = Random::new(11);
        let centres: Vec<f32> = (0..k * dims).map(|_| SPREAD * random.normal()).collect();
        let mut values = Vec::with_capacity(n * dims);
        for _ in 0..n {
            let centre = random.below(k as u64) as usize;
            let centre = &centres[centre * dims..][..dims];
            values.extend(centre.iter().map(|centre| centre + random.normal()));
        }
        Self::new(format!("{}×{dims} k={k}", short(n)), dims, k, values)
    }

    /// Reads the first rows, at most `most`, of the matrix in a safetensors file.
    ///
    /// # Errors
    /// Those of [`Points::open`].
    pub(super) fn embeddings(path: &Path, most: usize) -> Result<Self, tercet_host::Error> {
        let points = Points::open(&path.to_string_lossy(), &ReadOptions::default())?;
        let (n, dims) = (points.rows().min(most), points.dims());
        let k = TOPICS.min(n);
        let values = points.to_f32()[..n * dims].to_vec();
        let name = format!("{}×{dims} embeddings k={k}", short(n));
        Ok(Self::new(name, dims, k, values))
    }

    fn new(name: String, dims: usize, k: usize, values: Vec<f32>) -> Self {
        let n = values.len() / dims;
        let (mut random, mut seeds) = (Random::new(12), BTreeSet::new());
        while seeds.len() < k {
            seeds.insert(random.below(n as u64) as usize);
        }
        Self {
            name,
            dims,
            k,
            values,
            seeds: seeds.into_iter().collect(),
        }
    }

    /// Returns the first centroids.
    pub(super) fn start(&self) -> Vec<f32> {
        self.gather(&self.values)
    }

    /// Returns the rows of the seeds in `rows`, which may contain the points' codes.
    pub(super) fn gather<T: Copy>(&self, rows: &[T]) -> Vec<T> {
        let rows = self.seeds.iter().map(|&seed| &rows[seed * self.dims..]);
        rows.flat_map(|row| &row[..self.dims]).copied().collect()
    }
}
