//! The passes over points that seeding and reseeding need.

use super::points::{THREADS, count};
use super::problem::DeviceClusters;
use super::state::{SHARE, TRIED};
use crate::engine::{Argument, CudaError, Grid};

const MODULE: &str = "seed";

impl DeviceClusters<'_> {
    /// Σ w·D² of each share, where they are not known.
    fn weigh(&mut self) -> Result<(), CudaError> {
        if self.state.massed {
            return Ok(());
        }
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let arguments = [
            Argument::from(&state.distances),
            Argument::from(points.weights.as_ref()),
            count(points.len),
            Argument::from(&mut state.masses),
        ];
        let grid = Grid::strided(points.len, SHARE, THREADS, u32::MAX);
        // SAFETY: n distances, n weights or none, and a mass for each share; a block a share.
        unsafe { cuda.launch(MODULE, "seed_masses", grid, &arguments) }?;
        state.massed = true;
        Ok(())
    }

    /// The lowest point at which the running sum of w·D² exceeds `r`.
    pub(super) fn picked(&mut self, r: u64) -> Result<Option<usize>, CudaError> {
        self.weigh()?;
        self.clear_result()?;
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let arguments = [
            Argument::from(&state.masses),
            count(state.masses.len()),
            Argument::from(&state.distances),
            Argument::from(points.weights.as_ref()),
            count(points.len),
            r.into(),
            Argument::from(&mut state.result),
        ];
        // SAFETY: as in `weigh`; one block.
        unsafe { cuda.launch(MODULE, "seed_pick", Grid::new(1, THREADS), &arguments) }?;
        // The index plus one.
        let found = state.found(cuda)?.number;
        Ok(found.checked_sub(1).map(|index| index as usize))
    }

    /// Shortens distances to those to a cluster's centroid; Σ w·D².
    pub(super) fn shortened(&mut self, cluster: usize) -> Result<u64, CudaError> {
        self.clear_result()?;
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let arguments = [
            Argument::from(&points.rows),
            count(points.stride),
            count(points.len),
            Argument::from(points.weights.as_ref()),
            Argument::from(&points.lengths),
            state.centroids.at(cluster * points.stride),
            Argument::from(&mut state.distances),
            Argument::from(&mut state.masses),
            Argument::from(&mut state.result),
        ];
        let grid = Grid::strided(points.len, SHARE, THREADS, u32::MAX);
        // SAFETY: n rows and one centroid of `stride` bytes, n of all that points have, a mass for each share; a block a share.
        unsafe { cuda.launch(MODULE, "seed_shorten", grid, &arguments) }?;
        state.massed = true;
        Ok(state.found(cuda)?.number)
    }

    /// What [`DeviceClusters::shortened`] would give with each candidate, which the caller has checked.
    pub(super) fn potentials_of(
        &mut self,
        candidates: &[usize],
        totals: &mut [u64],
    ) -> Result<(), CudaError> {
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        for (candidates, totals) in candidates.chunks(TRIED).zip(totals.chunks_mut(TRIED)) {
            let mut indices = [0; TRIED];
            for (index, &candidate) in indices.iter_mut().zip(candidates) {
                // There are fewer than 2³² points.
                *index = candidate as u32;
            }
            cuda.write(&indices, &mut state.candidates)?;
            cuda.clear(&mut state.totals)?;
            let arguments = [
                Argument::from(&points.rows),
                count(points.stride),
                count(points.len),
                Argument::from(points.weights.as_ref()),
                Argument::from(&points.lengths),
                Argument::from(&state.candidates),
                count(candidates.len()),
                Argument::from(&state.distances),
                Argument::from(&mut state.totals),
            ];
            let grid = Grid::strided(points.len, SHARE, THREADS, u32::MAX);
            // SAFETY: as in `shortened`; up to eight candidates, which are points, and as many totals.
            unsafe { cuda.launch(MODULE, "seed_potentials", grid, &arguments) }?;
            let mut found = [0; TRIED];
            cuda.read(&state.totals, &mut found)?;
            totals.copy_from_slice(&found[..totals.len()]);
        }
        Ok(())
    }

    /// The largest rank D² · 2³² + (2³² − 1 − index) below `last` among points of positive weight and distance; 0 for none.
    pub(super) fn farthest_below(&mut self, last: u64) -> Result<u64, CudaError> {
        self.clear_result()?;
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let arguments = [
            Argument::from(&state.distances),
            Argument::from(points.weights.as_ref()),
            count(points.len),
            last.into(),
            Argument::from(&mut state.result),
        ];
        let grid = Grid::strided(points.len, 256, THREADS, 16 * cuda.multiprocessors());
        // SAFETY: n distances, and n weights or none.
        unsafe { cuda.launch(MODULE, "seed_farthest", grid, &arguments) }?;
        Ok(state.found(cuda)?.number)
    }

    /// The lowest point of positive weight without a label.
    pub(super) fn unlabelled(&mut self) -> Result<Option<usize>, CudaError> {
        self.clear_result()?;
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let arguments = [
            Argument::from(&state.labels),
            Argument::from(points.weights.as_ref()),
            count(points.len),
            Argument::from(&mut state.result),
        ];
        let grid = Grid::strided(points.len, 256, THREADS, 16 * cuda.multiprocessors());
        // SAFETY: n labels, and n weights or none.
        unsafe { cuda.launch(MODULE, "seed_unlabelled", grid, &arguments) }?;
        // n less the index, or 0.
        let found = state.found(cuda)?.number as usize;
        Ok((found > 0).then(|| points.len - found))
    }

    /// Gives a centroid a point's coordinates; with `seed` the point gets the label and D² = 0. Both exist.
    pub(super) fn placed(
        &mut self,
        cluster: usize,
        point: usize,
        seed: bool,
    ) -> Result<(), CudaError> {
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let (labels, distances) = if seed {
            (
                Argument::from(&mut state.labels),
                Argument::from(&mut state.distances),
            )
        } else {
            (Argument::none(), Argument::none())
        };
        let masses = (seed && state.massed).then_some(&state.masses);
        let arguments = [
            Argument::from(&points.rows),
            count(points.stride),
            count(point),
            Argument::from(points.weights.as_ref()),
            Argument::from(&mut state.centroids),
            count(cluster),
            labels,
            distances,
            Argument::from(masses),
            Argument::from(&mut state.result),
        ];
        // SAFETY: a row and a centroid that exist, of `stride` bytes; the point's label, distance and share exist; one block. Nothing else
        // uses the masses meanwhile.
        unsafe { cuda.launch(MODULE, "seed_place", Grid::new(1, THREADS), &arguments) }
    }
}
