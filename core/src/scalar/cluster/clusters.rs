//! Points and their clusters over the caller's slices.

use super::sums::{Mover, mover};
use super::{Accumulator, accumulate, fade, norms, passes};
use crate::arch::nearest;
use crate::cluster::{ClusterError, MAX_SPHERE_WEIGHT, Points, Update};
use crate::engine::{Assigned, Buffers, ClusterProblem, Farthest, Shape};

/// The label of unlabelled points; there are fewer clusters.
const UNLABELLED: u32 = u32::MAX;

/// The reference engine's [`ClusterProblem`]: all state is in the caller's slices.
///
/// For n points, k clusters and d coordinates it takes 8 bytes per point, and k · (d · (1 + size of `S`) + 12) bytes
/// for the clusters (k · d more to keep the best centroids).
#[derive(Debug)]
pub struct Clusters<'a, S = i64> {
    points: Points<'a>,
    k: usize,
    update: Update,
    mover: Mover<S>,
    buffers: Buffers<'a, S>,
}

impl<'a, S: Accumulator> Clusters<'a, S> {
    /// Borrows points and buffers; see [`Buffers`] for their lengths.
    ///
    /// # Errors
    /// [`ClusterError::Clusters`]; [`ClusterError::Length`]; [`ClusterError::Weight`] above
    /// [`Accumulator::MAX_WEIGHT`], or above [`MAX_SPHERE_WEIGHT`] on a sphere.
    pub fn new(
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a, S>,
    ) -> Result<Self, ClusterError> {
        check(&points, k, update, S::MAX_WEIGHT, &buffers)?;
        let mut clusters = Self {
            points,
            k,
            update,
            mover: mover(update),
            buffers,
        };
        clusters.buffers.centroids.fill(0);
        clusters.forget();
        Ok(clusters)
    }

    /// Returns the points.
    pub const fn points(&self) -> Points<'a> {
        self.points
    }

    /// Returns the k · d centroids.
    pub const fn centroids(&self) -> &[i8] {
        self.buffers.centroids
    }

    /// Returns the labels, one per point; `u32::MAX` before the first assignment.
    pub const fn labels(&self) -> &[u32] {
        self.buffers.labels
    }

    /// Returns the squared distances, one per point.
    pub const fn distances(&self) -> &[u32] {
        self.buffers.distances
    }

    /// Returns the points and the state, for an engine that fills the state in its own way.
    pub fn parts(&mut self) -> (Points<'a>, &mut Buffers<'a, S>) {
        (self.points, &mut self.buffers)
    }

    fn forget(&mut self) {
        self.buffers.labels.fill(UNLABELLED);
    }

    fn checked(&self, index: usize, count: usize) -> Result<(), ClusterError> {
        if index < count {
            Ok(())
        } else {
            Err(ClusterError::Index { index, count })
        }
    }

    /// Does everything except the sums.
    fn measured(&mut self) -> Assigned {
        let dims = self.points.dims();
        let Buffers {
            labels,
            distances,
            centroids,
            norms: lengths,
            ..
        } = &mut self.buffers;
        norms(centroids, dims, lengths);
        passes::measure(&self.points, centroids, lengths, labels, distances)
    }

    fn clear_sums(&mut self) {
        self.buffers.sums.fill(S::default());
        self.buffers.counts.fill(0);
    }
}

/// Checks sizes and weights, as every engine over these buffers must before it starts.
pub fn check<S>(
    points: &Points<'_>,
    k: usize,
    update: Update,
    max_weight: u64,
    buffers: &Buffers<'_, S>,
) -> Result<(), ClusterError> {
    points.check_clusters(k)?;
    let limit = match update {
        Update::Mean => max_weight,
        Update::Sphere(_) => max_weight.min(MAX_SPHERE_WEIGHT),
    };
    if points.weight() > limit {
        return Err(ClusterError::Weight {
            total: points.weight(),
            limit,
        });
    }
    // k is at most n, so this is at most n · d, which is the length of a slice.
    let table = k * points.dims();
    let kept = buffers.kept.len();
    for (found, expected) in [
        (buffers.labels.len(), points.len()),
        (buffers.distances.len(), points.len()),
        (buffers.centroids.len(), table),
        (kept, if kept == 0 { 0 } else { table }),
        (buffers.norms.len(), k),
        (buffers.sums.len(), table),
        (buffers.counts.len(), k),
    ] {
        if found != expected {
            return Err(ClusterError::Length { expected, found });
        }
    }
    Ok(())
}

fn copy<T: Copy>(from: &[T], to: &mut [T]) -> Result<(), ClusterError> {
    if from.len() != to.len() {
        return Err(ClusterError::Length {
            expected: from.len(),
            found: to.len(),
        });
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    Ok(())
}

impl<S: Accumulator> ClusterProblem for Clusters<'_, S> {
    type Error = ClusterError;

    fn shape(&self) -> Shape {
        Shape {
            points: self.points.len(),
            dims: self.points.dims(),
            clusters: self.k,
            weight: self.points.weight(),
            heaviest: self.points.heaviest(),
            update: self.update,
        }
    }

    fn fill(&mut self, distance: u32) -> Result<(), ClusterError> {
        self.buffers.distances.fill(distance);
        self.forget();
        Ok(())
    }

    fn pick(&mut self, r: u64) -> Result<Option<usize>, ClusterError> {
        Ok(passes::pick(&self.points, self.buffers.distances, r))
    }

    fn lowest_unlabelled(&mut self) -> Result<Option<usize>, ClusterError> {
        let mut points = self.points.rows().zip(self.buffers.labels.iter());
        Ok(points.position(|((_, weight), &label)| weight > 0 && label == UNLABELLED))
    }

    fn seed(&mut self, cluster: usize, point: usize) -> Result<u32, ClusterError> {
        self.place(cluster, point)?;
        if let Some(label) = self.buffers.labels.get_mut(point) {
            *label = cluster as u32;
        }
        if let Some(distance) = self.buffers.distances.get_mut(point) {
            *distance = 0;
        }
        let weights = self.points.weights();
        Ok(weights.map_or(1, |weights| weights.get(point).copied().unwrap_or(0)))
    }

    fn shorten(&mut self, cluster: usize) -> Result<u64, ClusterError> {
        self.checked(cluster, self.k)?;
        let dims = self.points.dims();
        let Buffers {
            distances,
            centroids,
            ..
        } = &mut self.buffers;
        let centroid = centroids.get(cluster * dims..).unwrap_or_default();
        Ok(passes::shorten(&self.points, centroid, distances))
    }

    fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> Result<(), ClusterError> {
        if totals.len() != candidates.len() {
            return Err(ClusterError::Length {
                expected: candidates.len(),
                found: totals.len(),
            });
        }
        for (&candidate, total) in candidates.iter().zip(totals) {
            self.checked(candidate, self.points.len())?;
            let row = self.points.row(candidate);
            *total = passes::potential(&self.points, row, self.buffers.distances);
        }
        Ok(())
    }

    fn set_centroids(&mut self, centroids: &[i8]) -> Result<(), ClusterError> {
        copy(centroids, self.buffers.centroids).map_err(|_| ClusterError::Length {
            expected: self.buffers.centroids.len(),
            found: centroids.len(),
        })?;
        self.forget();
        Ok(())
    }

    fn measure(&mut self) -> Result<Assigned, ClusterError> {
        Ok(self.measured())
    }

    fn assign(&mut self) -> Result<Assigned, ClusterError> {
        let assigned = self.measured();
        self.clear_sums();
        let Buffers {
            labels,
            sums,
            counts,
            ..
        } = &mut self.buffers;
        for ((row, weight), &label) in self.points.rows().zip(labels.iter()) {
            accumulate(row, weight, label, sums, counts);
        }
        Ok(assigned)
    }

    fn update(&mut self) -> Result<(), ClusterError> {
        let Buffers {
            centroids,
            sums,
            counts,
            ..
        } = &mut self.buffers;
        (self.mover)(self.update, self.points.dims(), sums, counts, centroids);
        Ok(())
    }

    fn next_empty(&mut self, first: usize) -> Result<Option<usize>, ClusterError> {
        let mut counts = self.buffers.counts.iter().enumerate().skip(first);
        Ok(counts
            .find(|&(_, &count)| count == 0)
            .map(|(cluster, _)| cluster))
    }

    fn farthest(&mut self, last: Option<Farthest>) -> Result<Option<Farthest>, ClusterError> {
        Ok(passes::farthest(
            &self.points,
            self.buffers.distances,
            0,
            last,
        ))
    }

    fn place(&mut self, cluster: usize, point: usize) -> Result<(), ClusterError> {
        self.checked(cluster, self.k)?;
        self.checked(point, self.points.len())?;
        let row = self.points.row(point);
        let rest = self.buffers.centroids.get_mut(cluster * row.len()..);
        for (c, &x) in rest.unwrap_or_default().iter_mut().zip(row) {
            *c = x;
        }
        Ok(())
    }

    fn start_batches(&mut self) -> Result<(), ClusterError> {
        self.clear_sums();
        Ok(())
    }

    fn batch(&mut self, points: &[u32], cap: u32) -> Result<(), ClusterError> {
        let dims = self.points.dims();
        let weights = self.points.weights();
        let Buffers {
            centroids,
            norms: lengths,
            sums,
            counts,
            ..
        } = &mut self.buffers;
        norms(centroids, dims, lengths);
        for &point in points {
            let row = self.points.row(point as usize);
            let weight = match weights {
                Some(weights) => weights.get(point as usize).copied().unwrap_or(0),
                None => 1,
            };
            if row.is_empty() {
                return Err(ClusterError::Index {
                    index: point as usize,
                    count: self.points.len(),
                });
            }
            let found = nearest(row, centroids, lengths);
            accumulate(row, weight, found.label, sums, counts);
        }
        fade(dims, cap, sums, counts);
        self.update()
    }

    fn keep(&mut self) -> Result<(), ClusterError> {
        copy(self.buffers.centroids, self.buffers.kept)
    }

    fn restore(&mut self) -> Result<(), ClusterError> {
        copy(self.buffers.kept, self.buffers.centroids)
    }

    fn read_centroids(&mut self, out: &mut [i8]) -> Result<(), ClusterError> {
        copy(self.buffers.centroids, out)
    }

    fn read_labels(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        copy(self.buffers.labels, out)
    }

    fn read_distances(&mut self, out: &mut [u32]) -> Result<(), ClusterError> {
        copy(self.buffers.distances, out)
    }

    fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> Result<(), ClusterError> {
        copy(self.buffers.counts, counts)?;
        if sums.len() != self.buffers.sums.len() {
            return Err(ClusterError::Length {
                expected: self.buffers.sums.len(),
                found: sums.len(),
            });
        }
        for (out, sum) in sums.iter_mut().zip(self.buffers.sums.iter()) {
            *out = sum.get();
        }
        Ok(())
    }
}
