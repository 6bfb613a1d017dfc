//! The passes over points for seeding and reseeding.

use super::points::{THREADS, count};
use super::problem::DeviceClusters;
use super::state::{SHARE, TRIED};
use crate::engine::{Argument, CudaError, LaunchGrid};

const MODULE: &str = "seed";

impl DeviceClusters<'_> {
    /// Computes Σ w·D² of each share, if they are not known.
    pub(super) fn weigh(&mut self) -> Result<(), CudaError> {
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
        let grid = LaunchGrid::strided(points.len, SHARE, THREADS, u32::MAX);
        // SAFETY: n distances, n weights or none, and a mass for each share; a block a share.
        unsafe { cuda.launch(MODULE, "seed_masses", grid, &arguments) }?;
        state.massed = true;
        Ok(())
    }

    /// Finds the lowest point at which the running sum of w·D² exceeds `r`, and stores its index plus one.
    pub(super) fn pick_queued(&mut self, r: u64) -> Result<(), CudaError> {
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
        unsafe { cuda.launch(MODULE, "seed_pick", LaunchGrid::new(1, THREADS), &arguments) }
    }

    /// Shortens distances to the distance to a cluster's centroid if that is less, and stores Σ w·D².
    pub(super) fn shorten_queued(&mut self, cluster: usize) -> Result<(), CudaError> {
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
        let grid = LaunchGrid::strided(points.len, SHARE, THREADS, u32::MAX);
        // SAFETY: n rows and one centroid of `stride` bytes, n of all that points have, a mass for each share; a block
        // a share.
        unsafe { cuda.launch(MODULE, "seed_shorten", grid, &arguments) }?;
        state.massed = true;
        Ok(())
    }

    /// Computes the results that [`DeviceClusters::shorten_queued`] would store with each of up to eight candidates,
    /// which are rows on the device. They go to the state's totals.
    pub(super) fn potentials_queued(
        &mut self,
        candidates: impl Iterator<Item = u32>,
    ) -> Result<(), CudaError> {
        let Self {
            cuda,
            points,
            state,
            ..
        } = self;
        let points = points.get();
        let (mut indices, mut tried) = ([0; TRIED], 0);
        for (index, candidate) in indices.iter_mut().zip(candidates) {
            *index = candidate;
            tried += 1;
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
            count(tried),
            Argument::from(&state.distances),
            Argument::from(&mut state.totals),
        ];
        let grid = LaunchGrid::strided(points.len, SHARE, THREADS, u32::MAX);
        // SAFETY: as in `shorten_queued`; up to eight candidates, which have rows and lengths, and as many totals.
        unsafe { cuda.launch(MODULE, "seed_potentials", grid, &arguments) }
    }

    /// Stores the largest rank D² · 2³² + (2³² − 1 − index) below `last` among points of positive weight and distance;
    /// 0 for none.
    pub(super) fn farthest_queued(&mut self, last: u64) -> Result<(), CudaError> {
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
        let fit = cuda.resident_blocks(MODULE, "seed_farthest", THREADS, 0)?;
        let grid = LaunchGrid::strided(points.len, 256, THREADS, fit);
        // SAFETY: n distances, and n weights or none.
        unsafe { cuda.launch(MODULE, "seed_farthest", grid, &arguments) }
    }

    /// Stores the lowest point of positive weight without a label, as the number of points less its index; 0 for none.
    pub(super) fn unlabelled_queued(&mut self) -> Result<(), CudaError> {
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
        let fit = cuda.resident_blocks(MODULE, "seed_unlabelled", THREADS, 0)?;
        let grid = LaunchGrid::strided(points.len, 256, THREADS, fit);
        // SAFETY: n labels, and n weights or none.
        unsafe { cuda.launch(MODULE, "seed_unlabelled", grid, &arguments) }
    }

    /// Gives a centroid the coordinates of a point. With `seed` the point gets the label and D² = 0. Both exist.
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
        // SAFETY: a row and a centroid that exist, of `stride` bytes; the point's label, distance and share exist; one
        // block. Nothing else uses the masses meanwhile.
        unsafe {
            cuda.launch(
                MODULE,
                "seed_place",
                LaunchGrid::new(1, THREADS),
                &arguments,
            )
        }
    }
}
