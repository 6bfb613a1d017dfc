//! Operations whose kernels in [`Threads`] a user left out: core's own run instead, on one thread. The bits are the
//! same.

#[cfg(not(feature = "clustering"))]
mod cluster {
    use tercet_core::cluster::{ClusterError, Points, Update};
    use tercet_core::engine::{Buffers, ClusterEngine};
    use tercet_core::scalar::Clusters;

    use crate::parallel::Threads;

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
            Clusters::new(points, k, update, buffers)
        }
    }
}

#[cfg(not(feature = "search"))]
mod search {
    use tercet_core::engine::SearchEngine;
    use tercet_core::scalar::Base;
    use tercet_core::search::{Rows, SearchError};

    use crate::parallel::Threads;

    impl SearchEngine for Threads {
        type Error = SearchError;
        type Base<'a, R: Rows + 'a> = Base<R>;

        fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<R>, SearchError> {
            Ok(Base::new(rows))
        }
    }
}
