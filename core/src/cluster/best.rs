//! Keeps the best centroids of a run whose inertia may rise, or of several runs.

use crate::engine::ClusterProblem;

/// Holds the inertia of the centroids that the problem keeps.
#[derive(Debug)]
pub(super) struct Best {
    wanted: bool,
    inertia: Option<u64>,
}

impl Best {
    /// Keeps nothing unless `wanted`.
    pub(super) const fn new(wanted: bool) -> Self {
        Self {
            wanted,
            inertia: None,
        }
    }

    /// Keeps the current centroids, which have this inertia, if they are better than the kept ones.
    pub(super) fn offer<P: ClusterProblem>(
        &mut self,
        problem: &mut P,
        inertia: u64,
    ) -> Result<(), P::Error> {
        if self.wanted && self.inertia.is_none_or(|kept| inertia < kept) {
            problem.keep()?;
            self.inertia = Some(inertia);
        }
        Ok(())
    }

    /// Returns the inertia of the kept centroids.
    pub(super) const fn inertia(&self) -> Option<u64> {
        self.inertia
    }
}
