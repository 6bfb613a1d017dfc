//! Clustering on several devices: each device has a share of the points and all centroids.

mod crossing;
mod points;
mod problem;
mod shards;
mod totals;

use std::ops::Range;

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterEngine};

use self::points::Whole;
use self::totals::Totals;
use super::DeviceClusters;
use super::nearest::nearest;
use super::points::check_clusters;
use super::problem::PointsHandle;
use super::state::check_weight;
use crate::engine::cudas::{Link, at_once};
use crate::engine::{CudaError, Cudas, Exchange};

pub use self::points::CudasPoints;

/// A clustering on several CUDA devices, with the same bits as on one.
///
/// Every device assigns its own points and adds them up; [`Cudas`] describes where the sums of clusters are added. A
/// step copies 32 bytes back from each device. Seeds are single points, whose coordinates the host sends to all
/// devices. From the second call on, [`tercet_core::engine::ClusterProblem::assign_update`] consists of recorded
/// graphs: one of each device before its sums go to the others, and, if they go by copies, one after.
///
/// If NCCL fails during a call, the call returns an error and NCCL is ended. The next requests use copies, and the
/// engine's next clustering makes new NCCL communicators.
#[derive(Debug)]
pub struct CudasClusters<'a> {
    shards: Vec<Shard<'a>>,
    link: Link<'a>,
    whole: Whole,
    /// The host's points, if they were copied for this clustering.
    points: Option<Points<'a>>,
    k: usize,
    update: Update,
    /// True if totals are those of the labels, or continue over mini-batches.
    totalled: bool,
    /// Σ w·D² of the points of each shard, if known.
    masses: Option<Vec<u64>>,
    /// The lowest empty cluster, if known.
    empty: Option<Option<usize>>,
}

/// A device's part of a clustering.
#[derive(Debug)]
struct Shard<'a> {
    /// Its points, with labels, sums and all centroids.
    clusters: DeviceClusters<'a>,
    /// Range of these points.
    range: Range<usize>,
    totals: Totals,
}

impl ClusterEngine for Cudas {
    type Error = CudaError;
    type Clusters<'a> = CudasClusters<'a>;

    /// Copies each device's share of the points to it. The caller's buffers stay unchanged and may be empty.
    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        _buffers: Buffers<'a>,
    ) -> Result<CudasClusters<'a>, CudaError> {
        points.check_clusters(k)?;
        check_weight(points.weight(), update)?;
        let CudasPoints { parts, whole } = self.points(&points)?;
        let parts = parts.into_iter();
        let parts = parts.map(|(range, points)| (range, PointsHandle::Own(points)));
        let mut clusters = CudasClusters::new(self, parts.collect(), whole, k, update)?;
        clusters.points = Some(points);
        Ok(clusters)
    }

    /// They are on the devices.
    fn needs_buffers(&self) -> bool {
        false
    }

    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), CudaError> {
        nearest(self, points, centroids, labels, distances)
    }
}

impl Cudas {
    /// Starts a clustering of resident points into `k` clusters, as [`ClusterEngine::clusters`] does.
    ///
    /// # Errors
    /// [`tercet_core::cluster::ClusterError::Clusters`], [`tercet_core::cluster::ClusterError::Weight`];
    /// [`CudaError::Length`] for points of another engine; [`CudaError::Nccl`] if NCCL is required and fails;
    /// [`CudaError::OnDevice`] with [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn clusters_of<'a>(
        &'a mut self,
        points: &'a CudasPoints,
        k: usize,
        update: Update,
    ) -> Result<CudasClusters<'a>, CudaError> {
        check_clusters(k, points.whole.counted)?;
        check_weight(points.whole.weight, update)?;
        let (expected, found) = (points.parts.len(), self.devices.len());
        if expected > found {
            return Err(CudaError::Length { expected, found });
        }
        for ((_, part), cuda) in points.parts.iter().zip(&self.devices) {
            cuda.named(part.rows.check(&cuda.pool, part.rows.len()))?;
        }
        let parts = points.parts.iter();
        let parts = parts.map(|(range, points)| (range.clone(), PointsHandle::Resident(points)));
        CudasClusters::new(self, parts.collect(), points.whole, k, update)
    }
}

impl<'a> CudasClusters<'a> {
    fn new(
        cudas: &'a mut Cudas,
        parts: Vec<(Range<usize>, PointsHandle<'a>)>,
        whole: Whole,
        k: usize,
        update: Update,
    ) -> Result<Self, CudaError> {
        let count = parts.len();
        let link = cudas.links.between(&cudas.devices, count)?;
        let devices = cudas.devices.iter_mut().zip(parts).enumerate();
        let shards = at_once(devices, |(at, (cuda, (range, points)))| {
            let ordinal = cuda.context.ordinal();
            let made = (|| {
                let totals = Totals::new(cuda, (at, count), k, whole.dims)?;
                let room = totals.room * count;
                let clusters = DeviceClusters::unchecked(cuda, points, (k, room), update)?;
                Ok(Shard {
                    clusters,
                    range,
                    totals,
                })
            })();
            made.map_err(|error: CudaError| error.on(ordinal))
        })?;
        let mut clusters = CudasClusters {
            shards,
            link,
            whole,
            points: None,
            k,
            update,
            totalled: true,
            masses: None,
            empty: None,
        };
        if clusters.exchange() == Exchange::Nccl {
            clusters.queue(|shard| shard.prepare())?;
        }
        Ok(clusters)
    }

    /// Returns the way in which sums and centroids are exchanged now: never [`Exchange::Auto`].
    pub fn exchange(&self) -> Exchange {
        self.link.way()
    }
}
