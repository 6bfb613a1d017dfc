//! What everyone works on: the same values on every machine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tercet_core::number::Random;
use tercet_host::measure::short;
use tercet_host::points::{Points, ReadOptions};

/// Random values, nearly normal with mean 0 and variance 1.
pub(super) fn normals(len: usize) -> Arc<[f32]> {
    let mut random = Random::new(7);
    (0..len).map(|_| random.normal()).collect()
}

/// Random codes of `low..=high`.
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

/// Standard deviation of the mixtures' centres, where that of points around theirs is 1: the normals overlap, and
/// Lloyd's loop takes tens of steps.
const SPREAD: f32 = 0.3;

/// Clusters of the embeddings.
const TOPICS: usize = 256;

/// Points and where to start.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Such as `100K×64 k=64`.
    pub(super) name: String,
    /// Coordinates of a point.
    pub(super) dims: usize,
    /// Clusters.
    pub(super) k: usize,
    /// The points, row-major.
    pub(super) values: Vec<f32>,
    /// The k points that are the first centroids, all different.
    pub(super) seeds: Vec<usize>,
}

impl Data {
    /// `n` points of `k` normals (of n, where those are fewer) in equal parts; the same ones on every machine.
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

    /// The first rows, at most `most`, of the matrix in a safetensors file.
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

    /// The first centroids.
    pub(super) fn start(&self) -> Vec<f32> {
        self.gather(&self.values)
    }

    /// The rows of the seeds in `rows`, which may hold the points' codes.
    pub(super) fn gather<T: Copy>(&self, rows: &[T]) -> Vec<T> {
        let rows = self.seeds.iter().map(|&seed| &rows[seed * self.dims..]);
        rows.flat_map(|row| &row[..self.dims]).copied().collect()
    }
}
