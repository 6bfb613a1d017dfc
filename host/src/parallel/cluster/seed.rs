//! Seeding: draws by w·D², distances to candidates, and the farthest point.

use std::cmp::Reverse;

use tercet_core::engine::{ClusterProblem, Farthest};
use tercet_core::scalar::cluster as reference;
use tracing::trace_span;

use super::super::each::{chunks, chunks_mut, items_mut};
use super::share::{share, work};
use super::{Clusters, ThreadState, part};
use crate::simd::cluster::TILE;

/// Returns Σ w·D².
pub(super) fn mass(weights: Option<&[u32]>, distances: &[u32]) -> u64 {
    match weights {
        None => distances.iter().map(|&distance| u64::from(distance)).sum(),
        Some(weights) => {
            let pairs = weights.iter().zip(distances);
            pairs
                .map(|(&weight, &distance)| u64::from(weight) * u64::from(distance))
                .sum()
        }
    }
}

impl Clusters<'_> {
    /// Returns the lowest point at which the running sum of w·D² exceeds `r`: first by the masses of the shares, then
    /// within one.
    pub(super) fn picked(&mut self, r: u64) -> Option<usize> {
        let size = self.share;
        let (points, buffers) = self.inner.parts();
        if self.masses.is_empty() {
            let weights = points.weights();
            let parts = buffers.distances.chunks(size).enumerate();
            self.masses.extend(parts.map(|(index, distances)| {
                let weights = weights.map(|weights| &weights[index * size..][..distances.len()]);
                mass(weights, distances)
            }));
        }
        let mut rest = r;
        for (index, &mass) in self.masses.iter().enumerate() {
            if mass > rest {
                let first = index * size;
                let points = part(points, first, size);
                let found = reference::pick(&points, &buffers.distances[first..], rest);
                return found.map(|index| first + index);
            }
            rest -= mass;
        }
        None
    }

    /// Returns the point after `last` in the order of falling D², then rising index.
    ///
    /// Only shares that can contain it are searched point by point: the largest D² that may come next bounds a share.
    pub(super) fn next_farthest(&mut self, last: Option<Farthest>) -> Option<Farthest> {
        let size = self.share;
        let (points, buffers) = self.inner.parts();
        let distances = &*buffers.distances;
        let most = last.map_or(u32::MAX, |last| last.distance);
        let mut bounds = chunks(distances, size).gather(|index, distances| {
            // Without a branch, for vectors.
            let next = |&distance: &u32| if distance <= most { distance } else { 0 };
            (distances.iter().map(next).max().unwrap_or(0), index)
        });
        // The largest bounds first, and of equal ones the lowest indices.
        bounds.sort_unstable_by_key(|&(bound, index)| (Reverse(bound), index));
        let mut best: Option<Farthest> = None;
        for (distance, index) in bounds {
            let index = index * size;
            if best.is_some_and(|best| best.before(&Farthest { distance, index })) {
                break;
            }
            let points = part(points, index, size);
            let distances = &distances[index..][..points.len()];
            let found = reference::farthest(&points, distances, index, last);
            if found.is_some_and(|found| best.is_none_or(|best| found.before(&best))) {
                best = found;
            }
        }
        best
    }

    /// Call before the distance of a point becomes 0: subtracts its part from its share's mass.
    pub(super) fn forget_mass(&mut self, point: usize) {
        let (points, buffers) = self.inner.parts();
        let mass = self.masses.get_mut(point / self.share);
        if let (Some(mass), Some(&distance)) = (mass, buffers.distances.get(point)) {
            let weight = points.weights().map_or(1, |weights| weights[point]);
            *mass -= u64::from(weight) * u64::from(distance);
        }
    }

    /// Shortens all distances to those to the one candidate, if these are less; returns Σ w·D².
    pub(super) fn shortened(&mut self) -> u64 {
        let _span = trace_span!("seed").entered();
        let size = self.share;
        let count = self.ready(work(self.lengths.len(), self.shape().dims, 1));
        let (kernels, candidates, lengths) = (self.kernels, &self.candidates, &self.lengths);
        let (points, buffers) = self.inner.parts();
        let dims = points.dims();
        self.masses.resize(lengths.len().div_ceil(size), 0);
        let parts = chunks_mut(buffers.distances, size).zip(items_mut(&mut self.masses));
        share(
            &mut self.jobs[..count],
            parts,
            &|job, index, (distances, total)| {
                let ThreadState { scratch, found, .. } = job;
                found.resize(TILE, 0);
                *total = 0;
                for (tile, distances) in distances.chunks_mut(TILE).enumerate() {
                    let first = index * size + tile * TILE;
                    let rows = &points.values()[first * dims..];
                    let lengths = &lengths[first..][..distances.len()];
                    kernels.each(rows, lengths, candidates, scratch, found);
                    let plain = kernels.shorten(found, distances);
                    *total += match points.weights() {
                        None => plain,
                        Some(weights) => mass(Some(&weights[first..]), distances),
                    };
                }
            },
        );
        self.masses.iter().sum()
    }

    /// Computes the results that [`Clusters::shortened`] would give with each candidate.
    pub(super) fn potential(&mut self, totals: &mut [u64]) {
        let _span = trace_span!("seed", candidates = totals.len()).entered();
        let size = self.share;
        let count = self.ready(work(self.lengths.len(), self.shape().dims, totals.len()));
        let (kernels, candidates, lengths) = (self.kernels, &self.candidates, &self.lengths);
        let (points, buffers) = self.inner.parts();
        let (dims, len) = (points.dims(), totals.len());
        let jobs = &mut self.jobs[..count];
        for job in jobs.iter_mut() {
            job.totals.clear();
            job.totals.resize(len, 0);
            job.found.resize(len * TILE, 0);
        }
        let parts = chunks(buffers.distances, size);
        share(jobs, parts, &|job, index, distances| {
            for (tile, distances) in distances.chunks(TILE).enumerate() {
                let first = index * size + tile * TILE;
                let rows = &points.values()[first * dims..];
                let lengths = &lengths[first..][..distances.len()];
                kernels.each(rows, lengths, candidates, &mut job.scratch, &mut job.found);
                let weights = points.weights();
                let weights = weights.map(|weights| &weights[first..][..distances.len()]);
                let columns = job.found.chunks_exact(TILE);
                for (total, found) in job.totals.iter_mut().zip(columns) {
                    *total += match weights {
                        None => kernels.nearer(found, distances),
                        Some(weights) => {
                            let pairs = found.iter().zip(distances).zip(weights);
                            pairs
                                .map(|((&a, &b), &weight)| u64::from(weight) * u64::from(a.min(b)))
                                .sum()
                        }
                    };
                }
            }
        });
        totals.fill(0);
        for job in jobs {
            for (total, part) in totals.iter_mut().zip(&job.totals) {
                *total += part;
            }
        }
    }
}
