//! Mini-batches: points from any place, assigned and summed.

use tercet_core::engine::{ClusterProblem, Shape};
use tracing::trace_span;

use super::super::each::chunks;
use super::share::{share, work};
use super::{Clusters, ThreadState};
use crate::simd::cluster::{Change, TILE};

impl Clusters<'_> {
    /// Assigns points to the current centroids and adds them to the sums and counts; every index is one of a point.
    pub(super) fn batched(&mut self, batch: &[u32]) {
        let _span = trace_span!("batch", points = batch.len()).entered();
        let Shape {
            dims, clusters: k, ..
        } = self.shape();
        let count = self.ready(work(batch.len(), dims, k));
        let (points, buffers) = self.inner.parts();
        self.kernels.pack(&mut self.packed, buffers.centroids, dims);
        let (kernels, packed, norms) = (self.kernels, &self.packed, &self.lengths);
        let jobs = &mut self.jobs[..count];
        for job in jobs.iter_mut() {
            job.sums.reset(k, dims);
        }
        share(jobs, chunks(batch, TILE), &|job, _, tile: &[u32]| {
            let ThreadState {
                scratch,
                sums,
                rows,
                ..
            } = job;
            let (mut lengths, mut weights) = ([0; TILE], [1; TILE]);
            rows.clear();
            for (&point, (length, weight)) in tile.iter().zip(lengths.iter_mut().zip(&mut weights))
            {
                let point = point as usize;
                rows.extend_from_slice(points.row(point));
                *length = norms[point];
                if let Some(weights) = points.weights() {
                    *weight = weights[point];
                }
            }
            let (mut labels, mut distances) = ([0; TILE], [0; TILE]);
            let (labels, distances) = (&mut labels[..tile.len()], &mut distances[..tile.len()]);
            let lengths = &lengths[..tile.len()];
            kernels.assign(rows, lengths, packed, scratch, labels, distances);
            let change = Change {
                rows,
                weights: points.weights().map(|_| &weights[..tile.len()]),
                labels,
                moved: None,
            };
            kernels.sum(sums, change);
        });
        for job in jobs {
            kernels.drain(&mut job.sums, buffers.sums, buffers.counts);
        }
    }
}
