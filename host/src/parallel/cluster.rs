//! Points that rayon's threads cluster.

use rayon::prelude::*;
use tercet_core::cluster::{ClusterError, Points, Update};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape};
use tercet_core::scalar::{self, cluster as reference};

use super::Threads;

/// Points and their clusters in the caller's slices, as [`scalar::Clusters`] has them; the passes over all points are
/// shared out in tiles. Allocates one table of sums a job during [`ClusterProblem::assign`].
#[derive(Debug)]
pub struct Clusters<'a> {
    inner: scalar::Clusters<'a>,
    /// Points in a tile.
    tile: usize,
}

impl ClusterEngine for Threads {
    type Error = ClusterError;
    type Clusters<'a> = Clusters<'a>;

    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Clusters<'a>, ClusterError> {
        Ok(Clusters {
            tile: (self.tile / points.dims()).max(1),
            inner: scalar::Clusters::new(points, k, update, buffers)?,
        })
    }
}

impl Clusters<'_> {
    /// Tiles of `size` points with their labels and distances.
    fn tiles(&mut self, size: usize) -> impl IndexedParallelIterator<Item = Tile<'_>> {
        let (points, buffers) = self.inner.parts();
        let labels = buffers.labels.par_chunks_mut(size);
        labels
            .zip(buffers.distances.par_chunks_mut(size))
            .enumerate()
            .map(move |(tile, (labels, distances))| Tile {
                points: part(points, tile * size, size),
                first: tile * size,
                labels,
                distances,
            })
    }

    /// Labels and distances of all points.
    fn measured(&mut self) -> Assigned {
        let tile = self.tile;
        let (points, buffers) = self.inner.parts();
        reference::norms(buffers.centroids, points.dims(), buffers.norms);
        let centroids = (&*buffers.centroids, &*buffers.norms);
        measure(points, tile, centroids, buffers.labels, buffers.distances)
    }
}

/// Gives every point its nearest centroid, the lowest of equals, and its squared distance, on all threads.
///
/// `labels` and `distances` are as long as there are points; `centroids` has at least one, with as many
/// coordinates. A label counts as changed where it was another before. O(n·k·d), and 4 bytes a centroid.
pub fn nearest(
    points: Points<'_>,
    centroids: &[i8],
    labels: &mut [u32],
    distances: &mut [u32],
) -> Assigned {
    let mut norms = vec![0; centroids.len() / points.dims()];
    reference::norms(centroids, points.dims(), &mut norms);
    let tile = (super::TILE / points.dims()).max(1);
    measure(points, tile, (centroids, &norms), labels, distances)
}

fn measure(
    points: Points<'_>,
    tile: usize,
    (centroids, norms): (&[i8], &[i32]),
    labels: &mut [u32],
    distances: &mut [u32],
) -> Assigned {
    labels
        .par_chunks_mut(tile)
        .zip(distances.par_chunks_mut(tile))
        .enumerate()
        .map(|(index, (labels, distances))| {
            let points = part(points, index * tile, tile);
            reference::measure(&points, centroids, norms, labels, distances)
        })
        .reduce(Assigned::default, |mut a, b| {
            a.merge(&b);
            a
        })
}

/// A tile of points with its part of the state.
struct Tile<'a> {
    points: Points<'a>,
    /// The index of its first point.
    first: usize,
    labels: &'a mut [u32],
    distances: &'a mut [u32],
}

/// Points from `first` on, at most `count`; `first` is one of them.
fn part<'a>(points: Points<'a>, first: usize, count: usize) -> Points<'a> {
    points
        .part(first, count)
        .expect("tiles begin at points that exist")
}

impl ClusterProblem for Clusters<'_> {
    type Error = ClusterError;

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn fill(&mut self, distance: u32) -> Result<(), ClusterError> {
        self.inner.fill(distance)
    }

    fn pick(&mut self, r: u64) -> Result<Option<usize>, ClusterError> {
        let masses: Vec<u64> = self
            .tiles(self.tile)
            .map(|tile| {
                let masses = tile.points.rows().zip(tile.distances.iter());
                masses
                    .map(|((_, weight), &distance)| u64::from(weight) * u64::from(distance))
                    .sum()
            })
            .collect();
        let mut rest = r;
        for (index, mass) in masses.into_iter().enumerate() {
            if mass > rest {
                let first = index * self.tile;
                let (points, buffers) = self.inner.parts();
                let points = part(points, first, self.tile);
                let found = reference::pick(&points, &buffers.distances[first..], rest);
                return Ok(found.map(|index| first + index));
            }
            rest -= mass;
        }
        Ok(None)
    }

    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, ClusterError> {
        self.inner.lowest_unlabelled()
    }

    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, ClusterError> {
        self.inner.seed(cluster, point)
    }

    fn shorten(&mut self, cluster: usize) -> Result<u64, ClusterError> {
        let shape = self.shape();
        if cluster >= shape.clusters {
            return self.inner.shorten(cluster);
        }
        let (_, buffers) = self.inner.parts();
        let centroid = buffers.centroids[cluster * shape.dims..][..shape.dims].to_vec();
        let tiles = self.tiles(self.tile);
        Ok(tiles
            .map(|tile| reference::shorten(&tile.points, &centroid, tile.distances))
            .sum())
    }

    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), ClusterError> {
        if totals.len() != candidates.len() {
            return Err(ClusterError::Length {
                expected: candidates.len(),
                found: totals.len(),
            });
        }
        let (points, buffers) = self.inner.parts();
        let count = points.len();
        if let Some(&index) = candidates.iter().find(|&&index| index >= count) {
            return Err(ClusterError::Index { index, count });
        }
        let distances = &*buffers.distances;
        let tile = self.tile;
        let sums = distances
            .par_chunks(tile)
            .enumerate()
            .map(|(index, distances)| {
                let tile = part(points, index * tile, tile);
                candidates
                    .iter()
                    .map(|&candidate| reference::potential(&tile, points.row(candidate), distances))
                    .collect::<Vec<u64>>()
            })
            .reduce(
                || vec![0; candidates.len()],
                |mut a, b| {
                    for (a, b) in a.iter_mut().zip(b) {
                        *a += b;
                    }
                    a
                },
            );
        totals.copy_from_slice(&sums);
        Ok(())
    }

    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), ClusterError> {
        self.inner.set_centroids(centroids)
    }

    fn measure(&mut self) -> Result<Assigned, ClusterError> {
        Ok(self.measured())
    }

    fn assign(&mut self) -> Result<Assigned, ClusterError> {
        let assigned = self.measured();
        let Shape { points, .. } = self.shape();
        let (_, buffers) = self.inner.parts();
        let (table, k) = (buffers.sums.len(), buffers.counts.len());
        // A table a job, so jobs should be few: as large as keeps every thread busy.
        let share = points
            .div_ceil(rayon::current_num_threads() * 2)
            .max(self.tile);
        let (sums, counts) = self
            .tiles(share)
            .map(|tile| {
                let (mut sums, mut counts) = (vec![0i64; table], vec![0; k]);
                for ((row, weight), &label) in tile.points.rows().zip(tile.labels.iter()) {
                    reference::accumulate(row, weight, label, &mut sums, &mut counts);
                }
                (sums, counts)
            })
            .reduce_with(|(mut sums, mut counts), (more_sums, more_counts)| {
                for (sum, more) in sums.iter_mut().zip(more_sums) {
                    *sum += more;
                }
                for (count, more) in counts.iter_mut().zip(more_counts) {
                    *count += more;
                }
                (sums, counts)
            })
            .expect("there is at least one point");
        let (_, buffers) = self.inner.parts();
        buffers.sums.copy_from_slice(&sums);
        buffers.counts.copy_from_slice(&counts);
        Ok(assigned)
    }

    fn update(&mut self) -> Result<(), ClusterError> {
        self.inner.update()
    }

    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, ClusterError> {
        self.inner.next_empty(first)
    }

    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, ClusterError> {
        let found = self
            .tiles(self.tile)
            .filter_map(|tile| reference::farthest(&tile.points, tile.distances, tile.first, last))
            .reduce_with(|a, b| if a.before(&b) { a } else { b });
        Ok(found)
    }

    fn place(&mut self, cluster: usize, point: usize) -> Result<(), ClusterError> {
        self.inner.place(cluster, point)
    }

    fn start_batches(&mut self) -> Result<(), ClusterError> {
        self.inner.start_batches()
    }

    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), ClusterError> {
        let (all, buffers) = self.inner.parts();
        let (count, dims) = (all.len(), all.dims());
        if let Some(&index) = points.iter().find(|&&index| index as usize >= count) {
            let index = index as usize;
            return Err(ClusterError::Index { index, count });
        }
        reference::norms(buffers.centroids, dims, buffers.norms);
        let (centroids, norms) = (&*buffers.centroids, &*buffers.norms);
        let labels: Vec<u32> = points
            .par_iter()
            .with_min_len(self.tile.min(64))
            .map(|&point| reference::nearest(all.row(point as usize), centroids, norms).label)
            .collect();
        for (&point, label) in points.iter().zip(labels) {
            let weight = all.weights().map_or(1, |weights| weights[point as usize]);
            let row = all.row(point as usize);
            reference::accumulate(row, weight, label, buffers.sums, buffers.counts);
        }
        reference::fade(dims, cap, buffers.sums, buffers.counts);
        self.inner.update()
    }

    fn keep(&mut self) -> Result<(), ClusterError> {
        self.inner.keep()
    }

    fn restore(&mut self) -> Result<(), ClusterError> {
        self.inner.restore()
    }

    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), ClusterError> {
        self.inner.read_centroids(out)
    }

    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        self.inner.read_labels(out)
    }

    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        self.inner.read_distances(out)
    }

    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), ClusterError> {
        self.inner.read_sums(sums, counts)
    }
}
