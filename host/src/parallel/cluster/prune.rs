//! Exact assignment when few centroids moved.
//!
//! Because centroids are rounded to int8, more and more of them do not move as Lloyd's loop converges. If a point's own
//! centroid did not move, its D² and label are the lowest score among all that did not move, with ties to the lowest
//! label. So it only needs a comparison with those that moved, as (D², label) in lexicographic order. A point whose own
//! centroid moved is compared with all. Both kinds are gathered in separate tiles. No bound is estimated, so rounding
//! cannot lose anything.

use tercet_core::cluster::Points;
use tercet_core::engine::Assigned;
use tracing::trace_span;

use super::super::each::chunks_mut;
use super::assign::{Assignment, Summed, ThreadState};
use super::share::share;
use crate::simd::cluster::{Change, Packed, TILE};

/// Minimum number of clusters: with fewer, the products of a tile cost no more than gathering it.
pub(super) const CLUSTERS: usize = 32;

/// The centroids that moved since points were labelled.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    /// For each cluster.
    flags: Vec<bool>,
    /// The moved ones, in order.
    labels: Vec<u32>,
    rows: Vec<i8>,
}

impl Moved {
    /// Compares centroids with those that points were labelled with; returns true if few enough moved to use this.
    pub(super) fn find(&mut self, before: &[i8], centroids: &[i8], dims: usize) -> bool {
        let pairs = before.chunks_exact(dims).zip(centroids.chunks_exact(dims));
        self.flags.clear();
        self.labels.clear();
        self.rows.clear();
        for (label, (before, now)) in (0u32..).zip(pairs) {
            let moved = before != now;
            self.flags.push(moved);
            if moved {
                self.labels.push(label);
                self.rows.extend_from_slice(now);
            }
        }
        self.flags.len() >= CLUSTERS && self.labels.len() <= self.flags.len() / 3
    }

    /// Returns the coordinates of the moved ones.
    pub(super) fn rows(&self) -> &[i8] {
        &self.rows
    }
}

/// An assignment of points whose labels and distances belong to the centroids before some moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pruned<'a> {
    /// The assignment to all centroids; it sums changes or nothing.
    pub(super) all: Assignment<'a>,
    pub(super) moved: &'a Moved,
    /// The centroids that moved.
    pub(super) packed: &'a Packed,
}

/// Points of a share, and their state.
struct Share<'a> {
    first: usize,
    labels: &'a mut [u32],
    distances: &'a mut [u32],
}

impl Pruned<'_> {
    /// As [`Assignment::run`].
    pub(super) fn run(
        &self,
        jobs: &mut [ThreadState],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Assigned {
        let _span = trace_span!("assign", pruned = true).entered();
        for job in jobs.iter_mut() {
            job.assigned = Assigned::default();
        }
        let size = self.all.share;
        let parts = chunks_mut(labels, size).zip(chunks_mut(distances, size));
        share(jobs, parts, &|job, index, (labels, distances)| {
            let mut share = Share {
                first: index * size,
                labels,
                distances,
            };
            self.share(job, &mut share);
        });
        let mut all = Assigned::default();
        for job in jobs {
            all.merge(&job.assigned);
        }
        all
    }

    fn share(&self, job: &mut ThreadState, share: &mut Share<'_>) {
        // Points whose own centroid moved, and others, until a tile of them is full.
        let (mut lost, mut kept) = (Gathered::default(), Gathered::default());
        for index in 0..share.labels.len() {
            if self.moved.flags[share.labels[index] as usize] {
                if lost.push(index) {
                    self.tile(job, share, &mut lost, true);
                }
            } else if !self.moved.labels.is_empty() && kept.push(index) {
                self.tile(job, share, &mut kept, false);
            }
        }
        self.tile(job, share, &mut lost, true);
        self.tile(job, share, &mut kept, false);
        let weights = weights(&self.all.points, share.first, share.labels.len());
        job.assigned.inertia += super::mass(weights, share.distances);
    }

    /// Assigns gathered points, to all centroids or to the moved ones.
    fn tile(
        &self,
        job: &mut ThreadState,
        share: &mut Share<'_>,
        gathered: &mut Gathered,
        to_all: bool,
    ) {
        let indices = gathered.take();
        if indices.is_empty() {
            return;
        }
        let Assignment {
            kernels,
            points,
            lengths,
            ..
        } = self.all;
        let count = indices.len();
        let (mut length, mut weight) = ([0; TILE], [1; TILE]);
        let (mut old, mut labels, mut distances) = ([0; TILE], [0; TILE], [0; TILE]);
        job.rows.clear();
        for (lane, &index) in indices.iter().enumerate() {
            let point = share.first + index as usize;
            job.rows.extend_from_slice(points.row(point));
            length[lane] = lengths[point];
            old[lane] = share.labels[index as usize];
            if let Some(weights) = points.weights() {
                weight[lane] = weights[point];
            }
        }
        let packed = if to_all { self.all.packed } else { self.packed };
        let (length, labels) = (&length[..count], &mut labels[..count]);
        let (scratch, distances) = (&mut job.scratch, &mut distances[..count]);
        kernels.assign(&job.rows, length, packed, scratch, labels, distances);
        let mut changed = 0;
        for (lane, &index) in indices.iter().enumerate() {
            let distance = &mut share.distances[index as usize];
            if to_all {
                *distance = distances[lane];
            } else {
                let label = self.moved.labels[labels[lane] as usize];
                labels[lane] = old[lane];
                if (distances[lane], label) < (*distance, old[lane]) {
                    (labels[lane], *distance) = (label, distances[lane]);
                }
            }
            share.labels[index as usize] = labels[lane];
            let differs = labels[lane] != old[lane];
            changed |= u64::from(differs) << lane;
            job.assigned.changed += u64::from(differs && weight[lane] > 0);
        }
        if self.all.summed == Summed::Changes {
            let change = Change {
                rows: &job.rows,
                weights: points.weights().map(|_| &weight[..count]),
                labels,
                moved: Some((changed, &old)),
            };
            kernels.sum(&mut job.sums, change);
        }
    }
}

/// Indices of a tile's points in their share.
struct Gathered {
    indices: [u32; TILE],
    len: usize,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            indices: [0; TILE],
            len: 0,
        }
    }
}

impl Gathered {
    /// Adds one; returns true if the tile is full.
    fn push(&mut self, index: usize) -> bool {
        // A share has fewer than 2³² points.
        self.indices[self.len] = index as u32;
        self.len += 1;
        self.len == TILE
    }

    /// Takes the gathered points; none remain.
    fn take(&mut self) -> &[u32] {
        &self.indices[..core::mem::take(&mut self.len)]
    }
}

fn weights<'a>(points: &Points<'a>, first: usize, count: usize) -> Option<&'a [u32]> {
    points.weights().map(|weights| &weights[first..][..count])
}
