//! Clustering on several devices: each has a share of the points and all centroids.

mod problem;
mod totals;

use std::ops::Range;

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Buffers, ClusterEngine};

use self::totals::Totals;
use super::DeviceClusters;
use super::problem::Held;
use super::state::{TRIED, check_weight};
use crate::engine::cudas::at_once;
use crate::engine::{CudaError, Cudas};

/// A clustering on several CUDA devices, which gives the bits of one.
///
/// Every device assigns its own points and adds them up; sums of clusters are added where [`Cudas`] says. A step brings back 32
/// bytes from each device. Seeds are single points, which the host has: it sends their coordinates to all.
#[derive(Debug)]
pub struct CudasClusters<'a> {
    shards: Vec<Shard<'a>>,
    reaches: &'a [Vec<bool>],
    points: Points<'a>,
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
        let shares = self.shares(points.len(), 1, points.dims());
        let count = shares.len();
        let devices = self.devices.iter_mut().zip(shares).enumerate();
        let shards = at_once(devices, |(at, (cuda, range))| {
            let ordinal = cuda.context.ordinal();
            // A share has a point, and what is within the points is a part of them.
            let part = points.part(range.start, range.len()).unwrap_or(points);
            let made = (|| {
                let part = cuda.points_and_guests(&part, TRIED)?;
                let totals = Totals::new(cuda, (at, count), k, points.dims())?;
                let clusters = DeviceClusters::unchecked(cuda, Held::Own(part), k, update)?;
                Ok(Shard {
                    clusters,
                    range,
                    totals,
                })
            })();
            made.map_err(|error: CudaError| error.on(ordinal))
        })?;
        Ok(CudasClusters {
            shards,
            reaches: &self.reaches,
            points,
            k,
            update,
            totalled: true,
            masses: None,
            empty: None,
        })
    }
}
