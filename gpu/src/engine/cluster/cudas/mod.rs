//! Clustering on several devices: each has a share of the points and all centroids.

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
use super::problem::Held;
use super::state::check_weight;
use crate::engine::cudas::{Link, at_once};
use crate::engine::{CudaError, Cudas, Exchange};

pub use self::points::CudasPoints;

/// A clustering on several CUDA devices, which gives the bits of one.
///
/// Every device assigns its own points and adds them up; sums of clusters are added where [`Cudas`] says. A step brings back 32
/// bytes from each device. Seeds are single points, whose coordinates the host sends to all. From the second on,
/// [`tercet_core::engine::ClusterProblem::assign_update`] is recorded graphs: one of each device before its sums cross to the
/// others, and, where they cross by copies, one after.
///
/// Where NCCL fails in the middle, the call is an error and NCCL is ended: what is asked for next crosses by copies, and the
/// engine's next clustering makes NCCL's communicators anew.
#[derive(Debug)]
pub struct CudasClusters<'a> {
    shards: Vec<Shard<'a>>,
    link: Link<'a>,
    whole: Whole,
    /// The host's, where the points were brought for this clustering.
    points: Option<Points<'a>>,
    k: usize,
    update: Update,
    /// Whether totals are those of the labels, or run on over mini-batches.
    totalled: bool,
    /// Σ w·D² of each shard's points, where they are known.
    masses: Option<Vec<u64>>,
    /// The lowest empty cluster, where it is known.
    empty: Option<Option<usize>>,
}

/// A device's part of a clustering.
#[derive(Debug)]
struct Shard<'a> {
    /// Its points, with labels, sums and all centroids.
    clusters: DeviceClusters<'a>,
    /// Which points they are.
    range: Range<usize>,
    totals: Totals,
}

impl ClusterEngine for Cudas {
    type Error = CudaError;
    type Clusters<'a> = CudasClusters<'a>;

    /// Brings each device its share of the points; the caller's buffers stay as they are and may be empty.
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
        let parts = parts.map(|(range, points)| (range, Held::Own(points)));
        let mut clusters = CudasClusters::new(self, parts.collect(), whole, k, update)?;
        clusters.points = Some(points);
        Ok(clusters)
    }

    /// They lie on the devices.
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
    /// Takes up points that are on the devices for `k` clusters, as [`ClusterEngine::clusters`] does.
    ///
    /// # Errors
    /// [`tercet_core::cluster::ClusterError::Clusters`], [`tercet_core::cluster::ClusterError::Weight`]; [`CudaError::Length`]
    /// for points of another engine; [`CudaError::Nccl`] where it must be NCCL and cannot; [`CudaError::OnDevice`] with
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
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
        let parts = parts.map(|(range, points)| (range.clone(), Held::Shared(points)));
        CudasClusters::new(self, parts.collect(), points.whole, k, update)
    }
}

impl<'a> CudasClusters<'a> {
    fn new(
        cudas: &'a mut Cudas,
        parts: Vec<(Range<usize>, Held<'a>)>,
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

    /// The way by which sums and centroids cross now: not [`Exchange::Auto`].
    pub fn exchange(&self) -> Exchange {
        self.link.way()
    }
}
