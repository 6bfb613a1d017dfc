//! Clustering on any engine.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape};
use tercet_core::scalar::{self, Scalar};
use tercet_host::engine::{EngineError, FlowEngine};
use tercet_host::parallel::Threads;

use super::{AnyEngine, any};

impl<D: FlowEngine> ClusterEngine for AnyEngine<'_, D> {
    type Error = EngineError;
    type Clusters<'a>
        = AnyClusters<'a, D>
    where
        Self: 'a;

    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<AnyClusters<'a, D>, EngineError> {
        Ok(match self {
            Self::Scalar(engine) => {
                let clusters = Scalar::clusters(engine, points, k, update, buffers)?;
                AnyClusters::Scalar(Box::new(clusters))
            }
            Self::Threads(engine) => {
                let clusters = Threads::clusters(engine, points, k, update, buffers)?;
                AnyClusters::Threads(Box::new(clusters))
            }
            Self::Device(engine) => {
                let clusters = engine.clusters(points, k, update, buffers);
                AnyClusters::Device(clusters.map_err(Into::into)?)
            }
        })
    }

    fn needs_buffers(&self) -> bool {
        any!(AnyEngine, self, engine => engine.needs_buffers())
    }

    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.nearest(points, centroids, labels, distances).map_err(Into::into))
    }
}

/// A clustering on an [`AnyEngine`].
#[derive(Debug)]
pub enum AnyClusters<'a, D: ClusterEngine + 'a> {
    /// On core's loops.
    Scalar(Box<scalar::Clusters<'a>>),
    /// On the processor's threads.
    Threads(Box<<Threads as ClusterEngine>::Clusters<'a>>),
    /// On a device.
    Device(D::Clusters<'a>),
}

/// Methods that call the same method of each variant.
macro_rules! clusters {
    ($(fn $method:ident(&mut self $(, $name:ident: $type:ty)*) -> $done:ty;)+) => {
        $(
            fn $method(&mut self $(, $name: $type)*) -> Result<$done, EngineError> {
                any!(AnyClusters, self, clusters => clusters.$method($($name),*).map_err(Into::into))
            }
        )+
    };
}

impl<'a, D: ClusterEngine<Error: Into<EngineError>> + 'a> ClusterProblem for AnyClusters<'a, D> {
    type Error = EngineError;

    fn shape(&self) -> Shape {
        any!(AnyClusters, self, clusters => clusters.shape())
    }

    clusters! {
        fn fill(&mut self, distance: u32) -> ();
        fn pick(&mut self, r: u64) -> Option<usize>;
        fn lowest_unlabelled(&mut self) -> Option<usize>;
        fn seed(&mut self, cluster: usize, point: usize) -> u32;
        fn shorten(&mut self, cluster: usize) -> u64;
        fn potentials(&mut self, candidates: &[usize], totals: &mut [u64]) -> ();
        fn set_centroids(&mut self, centroids: &[i8]) -> ();
        fn measure(&mut self) -> Assigned;
        fn assign(&mut self) -> Assigned;
        fn update(&mut self) -> ();
        fn assign_update(&mut self) -> Assigned;
        fn next_empty(&mut self, first: usize) -> Option<usize>;
        fn farthest(&mut self, last: Option<Farthest>) -> Option<Farthest>;
        fn place(&mut self, cluster: usize, point: usize) -> ();
        fn start_batches(&mut self) -> ();
        fn batch(&mut self, points: &[u32], cap: u32) -> ();
        fn keep(&mut self) -> ();
        fn restore(&mut self) -> ();
        fn read_centroids(&mut self, out: &mut [i8]) -> ();
        fn read_labels(&mut self, out: &mut [u32]) -> ();
        fn read_distances(&mut self, out: &mut [u32]) -> ();
        fn read_sums(&mut self, sums: &mut [i64], counts: &mut [u64]) -> ();
    }
}
