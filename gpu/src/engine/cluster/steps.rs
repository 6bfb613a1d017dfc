//! The steps of Lloyd's loop and of mini-batches: assignment, sums, centroids.

use tercet_core::cluster::Update;

use super::assigner::{Assigner, TILE, panels};
use super::points::{MODULE, THREADS, count};
use super::problem::DeviceClusters;
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// The module of the kernels that move centroids.
const UPDATES: &str = "cluster_update";

/// The kernel that adds points to a table in shared memory.
const SUMS: &str = "cluster_accumulate_shared";

/// The kernel that halves sums.
const FADE: &str = "cluster_fade";

/// Number of points whose labels a block of the adding kernels reads together.
const LOOK: usize = 1024;

/// Maximum bytes of a table of sums in shared memory: the amount that every launch may have.
const TABLE: usize = 48 << 10;

impl DeviceClusters<'_> {
    /// Clears the results of passes.
    pub(super) fn clear_result(&mut self) -> Result<(), CudaError> {
        self.cuda.clear(&mut self.state.result)
    }

    /// Computes labels and distances for the current centroids; keeps the labels before.
    pub(super) fn label(&mut self) -> Result<(), CudaError> {
        let Self {
            cuda,
            points,
            state,
            k,
            assigner,
            ..
        } = self;
        let points = points.get();
        cuda.row_norms(&state.centroids, points.stride, *k, &mut state.norms)?;
        let head = [
            Argument::from(&points.rows),
            count(points.stride),
            count(points.len),
        ];
        let tail = [
            Argument::from(points.weights.as_ref()),
            Argument::from(&points.lengths),
            Argument::from(&state.centroids),
            Argument::from(&state.norms),
            count(*k),
            Argument::from(&mut state.labels),
            Argument::from(&mut state.previous),
            Argument::from(&mut state.distances),
        ];
        let result = Argument::from(&mut state.result);
        let panels = Argument::from(panels(points.stride, cuda.shared));
        let arguments = match assigner {
            Assigner::Dp4a => [&head[..], &[Argument::none()], &tail, &[result]].concat(),
            Assigner::Mma { .. } => [&head[..], &tail, &[panels, result]].concat(),
            Assigner::Few { .. } | Assigner::Wgmma { .. } => [&head[..], &tail, &[result]].concat(),
        };
        let (module, kernel, grid) = assigner.launch(points.len, points.stride, cuda.shared);
        // SAFETY: n rows and k centroids of `stride` bytes, k norms, and n of all that points have; all that is read
        // was written, labels when they were forgotten. A block for each tile of points, or blocks that take them in
        // turn; shared memory for the panels that mma is told of and two for centroids, and what wgmma has for rows as
        // long as it was chosen for; clusters and rows as few and short as those of the kernel with centroids in
        // registers.
        unsafe { cuda.launch(module, kernel, grid, &arguments) }
    }

    /// Computes sums and counts of the labels: from those of the labels before if these are settled, otherwise from
    /// zero.
    pub(super) fn sum(&mut self) -> Result<(), CudaError> {
        if !self.state.settled {
            self.cuda.clear(&mut self.state.sums)?;
            self.cuda.clear(&mut self.state.counts)?;
        }
        let Self {
            cuda,
            points,
            state,
            k,
            ..
        } = self;
        let points = points.get();
        let previous = state.settled.then_some(&state.previous);
        let cells = (*k + *k * points.dims) * size_of::<i32>();
        if points.weights.is_none() && cells <= TABLE {
            let arguments = [
                Argument::from(&points.rows),
                count(points.stride),
                count(points.dims),
                count(points.len),
                Argument::from(previous),
                Argument::from(&state.labels),
                count(*k),
                Argument::from(&mut state.sums),
                Argument::from(&mut state.counts),
            ];
            // Fewer than 2²⁴ points per block, so that its sums fit 32 bits.
            let fit = cuda.resident_blocks(MODULE, SUMS, THREADS, cells as u32)?;
            let most = fit.max((points.len >> 23) as u32 + 1);
            let grid = LaunchGrid::strided(points.len, LOOK, THREADS, most).shared(cells as u32);
            // SAFETY: as in `label`; labels are below k, and shared memory has the table.
            return unsafe { cuda.launch(MODULE, SUMS, grid, &arguments) };
        }
        accumulate(
            cuda,
            points,
            (points.len, None),
            previous,
            &state.labels,
            (&mut state.sums, &mut state.counts),
        )
    }

    /// Moves the centroids, and stores the lowest empty cluster in the result.
    pub(super) fn move_centroids(&mut self) -> Result<(), CudaError> {
        let Self {
            cuda,
            points,
            state,
            k,
            update,
            ..
        } = self;
        let sums = (&state.sums, &state.counts);
        let to = (&state.centroids, &state.result);
        moved(cuda, points.get(), *update, (0, *k), sums, to)
    }

    /// Queues a step of Lloyd's loop: the recorded one if labels are settled.
    pub(super) fn stepped(&mut self) -> Result<(), CudaError> {
        if !self.state.settled {
            return self.step();
        }
        self.prepare_mover()?;
        self.recorded(Self::step)
    }

    /// As [`DeviceClusters::assigned`]: the recorded one if labels are settled. For problems that never take whole
    /// steps.
    pub(super) fn assigned_again(&mut self) -> Result<(), CudaError> {
        if self.state.settled {
            self.recorded(Self::assigned)
        } else {
            self.assigned()
        }
    }

    /// Loads the kernel that moves centroids. Labels are settled by an assignment, which has loaded all other kernels
    /// of a step.
    pub(super) fn prepare_mover(&mut self) -> Result<(), CudaError> {
        self.cuda.prepare(UPDATES, mover(self.update), 0)
    }

    /// Loads the kernels that follow sums over several devices.
    pub(super) fn prepare_ends(&mut self) -> Result<(), CudaError> {
        self.prepare_mover()?;
        self.cuda.prepare(UPDATES, FADE, 0)
    }

    /// Records `work` on the first call, and queues the recording. `work` is always the same, and labels are settled.
    fn recorded(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let graph = match self.state.graph.take() {
            Some(graph) => graph,
            None => {
                self.cuda.begin_capture()?;
                let recorded = work(self);
                self.cuda.end_capture(recorded)?
            }
        };
        // SAFETY: the graph is of this state, whose buffers it names live as long and are never replaced; it is of a
        // settled step, and this is one.
        let replayed = unsafe { self.cuda.replay(&graph) };
        self.state.graph = Some(graph);
        replayed
    }

    /// Does a step of Lloyd's loop.
    fn step(&mut self) -> Result<(), CudaError> {
        self.assigned()?;
        self.move_centroids()
    }

    /// Computes labels and distances, then sums and counts.
    pub(super) fn assigned(&mut self) -> Result<(), CudaError> {
        self.clear_result()?;
        self.label()?;
        self.sum()
    }

    /// Does the step of a mini-batch of points, each counted as one.
    pub(super) fn batch_step(&mut self, batch: &[u32], cap: u32) -> Result<(), CudaError> {
        self.batch_sums(batch)?;
        let clusters = (self.k, self.points.get().dims);
        let state = &mut self.state;
        let sums = (&mut state.sums, &mut state.counts);
        faded(self.cuda, clusters, cap, sums)?;
        self.move_centroids()
    }

    /// Adds the points of a mini-batch to the sums and counts of their nearest centroids.
    pub(super) fn batch_sums(&mut self, batch: &[u32]) -> Result<(), CudaError> {
        self.clear_result()?;
        let Self {
            cuda,
            points,
            state,
            k,
            ..
        } = self;
        let points = points.get();
        let (mut indices, mut labels) = match state.batch.take() {
            Some((indices, labels)) if indices.len() == batch.len() => (indices, labels),
            _ => (cuda.room(batch.len())?, cuda.room(batch.len())?),
        };
        cuda.write(batch, &mut indices)?;
        cuda.row_norms(&state.centroids, points.stride, *k, &mut state.norms)?;
        let arguments = [
            Argument::from(&points.rows),
            count(points.stride),
            count(batch.len()),
            Argument::from(&indices),
            Argument::none(),
            Argument::none(),
            Argument::from(&state.centroids),
            Argument::from(&state.norms),
            count(*k),
            Argument::from(&mut labels),
            Argument::none(),
            Argument::none(),
            Argument::from(&mut state.result),
        ];
        let grid = LaunchGrid::strided(batch.len(), TILE, THREADS, u32::MAX);
        // SAFETY: as in `label`; indices are of points, which the caller has checked, and without previous labels
        // nothing but the labels of the batch is written.
        unsafe { cuda.launch(MODULE, "cluster_assign", grid, &arguments) }?;
        accumulate(
            cuda,
            points,
            (batch.len(), Some(&indices)),
            None,
            &labels,
            (&mut state.sums, &mut state.counts),
        )?;
        state.batch = Some((indices, labels));
        Ok(())
    }

    /// Returns the lowest empty cluster from `first` on.
    pub(super) fn find_empty(&mut self, first: usize) -> Result<Option<usize>, CudaError> {
        self.clear_result()?;
        let Self { cuda, state, k, .. } = self;
        let arguments = [
            Argument::from(&state.counts),
            count(*k),
            count(first),
            Argument::from(&mut state.result),
        ];
        let grid = LaunchGrid::strided(*k - first, 256, THREADS, 1024);
        // SAFETY: there are k counts.
        unsafe { cuda.launch(UPDATES, "cluster_next_empty", grid, &arguments) }?;
        let found = state.found(cuda)?;
        Ok(self.lowest(found.empty))
    }

    /// Returns the cluster that a kernel stored as empty.
    pub(super) const fn lowest(&self, empty: u64) -> Option<usize> {
        // The value is k less an index below k, or 0.
        if empty == 0 {
            None
        } else {
            Some(self.k - empty as usize)
        }
    }
}

/// Moves `count` centroids from `first` on to the positions given by their sums and counts, and stores the lowest empty
/// one of them in the result.
pub(super) fn moved(
    cuda: &mut Cuda,
    points: &super::DevicePoints,
    update: Update,
    (first, clusters): (usize, usize),
    (sums, counts): (&DeviceBuffer<i64>, &DeviceBuffer<u64>),
    (centroids, result): (&DeviceBuffer<i8>, &DeviceBuffer<u64>),
) -> Result<(), CudaError> {
    let (dims, stride) = (points.dims, points.stride);
    let mut arguments = vec![
        Argument::from(sums),
        Argument::from(counts),
        count(clusters),
        count(dims),
        centroids.at(first * stride),
        count(stride),
    ];
    let grid = match update {
        Update::Mean => LaunchGrid::strided(clusters * dims, 256, THREADS, 1 << 16),
        Update::Sphere(sphere) => {
            let (numerator, denominator) = sphere.ratio();
            arguments.extend([Argument::from(numerator), denominator.into()]);
            // One block per cluster.
            LaunchGrid::strided(clusters, 1, THREADS, u32::MAX)
        }
    };
    arguments.push(result.into());
    // SAFETY: there are a sum of each coordinate and a count of each of these clusters, all written before, and
    // centroids of `stride` bytes, which only this launch and what follows it on the stream use.
    unsafe { cuda.launch(UPDATES, mover(update), grid, &arguments) }
}

/// Halves the counts that reach the cap, and their sums.
pub(super) fn faded(
    cuda: &mut Cuda,
    (clusters, dims): (usize, usize),
    cap: u32,
    (sums, counts): (&mut DeviceBuffer<i64>, &mut DeviceBuffer<u64>),
) -> Result<(), CudaError> {
    let arguments = [
        Argument::from(sums),
        Argument::from(counts),
        count(dims),
        // A cap of 0 would never be reached.
        u64::from(cap.max(1)).into(),
    ];
    let grid = LaunchGrid::strided(clusters, 1, THREADS, u32::MAX);
    // SAFETY: as many sums and counts as there are clusters; a block for each of them.
    unsafe { cuda.launch(UPDATES, FADE, grid, &arguments) }
}

/// Returns the kernel that moves centroids.
const fn mover(update: Update) -> &'static str {
    match update {
        Update::Mean => "cluster_means",
        Update::Sphere(_) => "cluster_sphere",
    }
}

/// Adds points to the table in the device's memory.
fn accumulate(
    cuda: &mut Cuda,
    points: &super::DevicePoints,
    (len, indices): (usize, Option<&DeviceBuffer<u32>>),
    previous: Option<&DeviceBuffer<u32>>,
    labels: &DeviceBuffer<u32>,
    (sums, counts): (&mut DeviceBuffer<i64>, &mut DeviceBuffer<u64>),
) -> Result<(), CudaError> {
    let arguments = [
        Argument::from(&points.rows),
        count(points.stride),
        count(points.dims),
        count(len),
        Argument::from(indices),
        Argument::from(points.weights.as_ref()),
        Argument::from(previous),
        Argument::from(labels),
        Argument::from(sums),
        Argument::from(counts),
    ];
    let fit = cuda.resident_blocks(MODULE, "cluster_accumulate", THREADS, 0)?;
    let grid = LaunchGrid::strided(len, LOOK, THREADS, fit);
    // SAFETY: there are `len` labels below k, as many previous ones, which are also below k or none, and indices of
    // points; k · d sums and k counts.
    unsafe { cuda.launch(MODULE, "cluster_accumulate", grid, &arguments) }
}
