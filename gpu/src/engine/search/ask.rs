//! Queries on the device, and the launches that give them keys.

use tercet_core::number::{Element, sum_of_squares};
use tercet_core::scalar;
use tercet_core::search::{FloatRows, Hit, Int8Rows, Metric, Rows, TernaryRows, Visitor};

use super::bar;
use super::rows::{DeviceRows, Pitched, Storage};
use super::scan::{Chosen, Scan, Sink, Wanted, find};
use crate::engine::device::Cuda;
use crate::engine::error::CudaError;
use crate::engine::launch::{Argument, Grid};
use crate::engine::memory::DeviceBuffer;

/// Queries of a launch, at most.
pub(super) const QUERIES: usize = 8;
/// Threads of a block, and of those that share a row of bytes.
const THREADS: u32 = 256;
const TEAM: usize = 8;
/// Threads that share a row of floats.
const WARP: usize = 32;
/// Blocks for each multiprocessor.
const BLOCKS: u32 = 8;
/// Dynamic shared memory that every device gives a block.
const SHARED: usize = 48 << 10;

/// What is asked of rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// So many of the best.
    Best(usize),
    /// Those that reach a threshold, which is not NaN.
    Reaching(f32),
}

/// Asks the device for the rows that may be wanted, a list for each query.
pub(super) struct Ask<'a> {
    pub(super) cuda: &'a mut Cuda,
    pub(super) on_device: &'a DeviceRows,
    pub(super) goal: Goal,
}

impl<'a> Ask<'a> {
    /// Rows of integers.
    fn integers<M: Metric>(
        &mut self,
        queries: &[i8],
        dim: usize,
        rows: &Pitched,
        kernel: Kernel<'a>,
    ) -> Result<Vec<Vec<u32>>, CudaError> {
        let each = kernel.runs * rows.pitch;
        // A query has at most 43,690 values, so that one has room.
        let most = [QUERIES, 4, 2]
            .into_iter()
            .find(|most| most * each <= SHARED);
        let mut lists = Vec::new();
        for queries in queries.chunks(most.unwrap_or(1) * dim) {
            let order = Order {
                dim,
                runs: kernel.runs,
                run: rows.row,
                pitch: rows.pitch,
            };
            let queries = Queries::upload(self.cuda, queries, order)?;
            let wanted = match self.goal {
                Goal::Best(k) => Wanted::Best(k, bar::slack(M::KIND)),
                Goal::Reaching(threshold) => {
                    let norm = queries.squares.first().copied().unwrap_or(0);
                    match bar::of_integers::<M>(threshold, norm) {
                        Some(bar) => Wanted::Reaching(bar),
                        None => return Ok(vec![Vec::new(); queries.count]),
                    }
                }
            };
            let counts = (queries.count, queries.padded);
            let scan = Integers {
                kernel: &kernel,
                queries: &queries,
                metric: bar::number(M::KIND),
            };
            lists.extend(find(
                self.cuda,
                self.on_device.count,
                counts,
                wanted,
                &scan,
            )?);
        }
        Ok(lists)
    }
}

impl Visitor for Ask<'_> {
    type Output = Result<Vec<Vec<u32>>, CudaError>;

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        queries: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let on_device = self.on_device;
        let Storage::Int8 { rows: bytes, norms } = &on_device.storage else {
            return Ok(Vec::new());
        };
        let kernel = Kernel {
            name: "search_int8",
            rows: vec![
                (&bytes.bytes).into(),
                bytes.pitch.into(),
                norms.as_ref().into(),
            ],
            runs: 1,
        };
        self.integers::<M>(queries, rows.dim(), bytes, kernel)
    }

    fn ternary<M: Metric>(
        &mut self,
        _: TernaryRows<'_>,
        queries: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let on_device = self.on_device;
        let Storage::Ternary {
            rows,
            dim,
            magnitudes,
            norms,
        } = &on_device.storage
        else {
            return Ok(Vec::new());
        };
        let kernel = Kernel {
            name: "search_ternary",
            rows: vec![
                (&rows.bytes).into(),
                rows.pitch.into(),
                (rows.row as u32).into(),
                (*dim as u32).into(),
                magnitudes.as_ref().into(),
                norms.as_ref().into(),
            ],
            runs: 4,
        };
        self.integers::<M>(queries, *dim, rows, kernel)
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        queries: &[f32],
        _: &mut [Hit<M::Float>],
    ) -> Self::Output {
        let mut lists = Vec::new();
        for query in queries.chunks_exact(rows.dim()) {
            let wanted = match self.goal {
                Goal::Best(k) => Wanted::Best(k, 0),
                Goal::Reaching(threshold) => Wanted::Reaching(bar::of_floats(M::KIND, threshold)),
            };
            let norm = if M::FLOAT_NORMS {
                sum_of_squares(query)
            } else {
                0.0
            };
            let scan = Floats {
                storage: &self.on_device.storage,
                query: self.cuda.upload(query)?,
                norm,
                metric: bar::number(M::KIND),
            };
            lists.extend(find(
                self.cuda,
                self.on_device.count,
                (1, 1),
                wanted,
                &scan,
            )?);
        }
        Ok(lists)
    }
}

/// How a query of `dim` values lies: in runs of `run`, each followed by zeros up to `pitch`.
#[derive(Clone, Copy)]
struct Order {
    dim: usize,
    runs: usize,
    run: usize,
    pitch: usize,
}

/// Queries as kernels take them: 1, 2, 4 or 8, the last of which may be zeros that stand for nothing.
struct Queries {
    count: usize,
    padded: usize,
    values: DeviceBuffer<i8>,
    sums: DeviceBuffer<i32>,
    norms: DeviceBuffer<u32>,
    /// The norms.
    squares: Vec<u32>,
}

impl Queries {
    fn upload(cuda: &mut Cuda, queries: &[i8], order: Order) -> Result<Self, CudaError> {
        let each = order.runs * order.pitch;
        let count = queries.len() / order.dim;
        let padded = count.next_power_of_two();
        let mut values = vec![0; padded * each];
        let (mut sums, mut squares) = (vec![0; padded], vec![0; padded]);
        for (number, query) in queries.chunks_exact(order.dim).enumerate() {
            let room = values[number * each..][..each].chunks_exact_mut(order.pitch);
            for (from, to) in query.chunks(order.run).zip(room) {
                to[..from.len()].copy_from_slice(from);
            }
            sums[number] = query.iter().map(|&x| i32::from(x)).sum();
            squares[number] = scalar::norm(query);
        }
        Ok(Self {
            count,
            padded,
            values: cuda.upload(&values)?,
            sums: cuda.upload(&sums)?,
            norms: cuda.upload(&squares)?,
            squares,
        })
    }
}

/// A kernel for rows of integers.
struct Kernel<'a> {
    name: &'static str,
    /// What it takes of rows.
    rows: Vec<Argument<'a>>,
    /// Runs of a row's values that lie in one place of its bytes; with more than one it takes the sums of queries.
    runs: usize,
}

/// Launches over rows of integers.
struct Integers<'a> {
    kernel: &'a Kernel<'a>,
    queries: &'a Queries,
    metric: u32,
}

impl Scan for Integers<'_> {
    fn scan(&self, cuda: &mut Cuda, chosen: Chosen, sink: &Sink<'_>) -> Result<(), CudaError> {
        let queries = self.queries;
        let most = BLOCKS * cuda.multiprocessors();
        let each = THREADS as usize / TEAM;
        let grid = Grid::strided(chosen.count, each, THREADS, most);
        let grid = grid.shared(queries.values.len() as u32);
        let mut arguments = self.kernel.rows.clone();
        arguments.extend(chosen.arguments());
        arguments.push((&queries.values).into());
        if self.kernel.runs > 1 {
            arguments.push((&queries.sums).into());
        }
        arguments.push((&queries.norms).into());
        arguments.push((queries.padded as u32).into());
        arguments.push(self.metric.into());
        arguments.extend(sink.arguments());
        // SAFETY: rows, queries and sums lie as the kernel says, which `DeviceRows` and `Queries` see to; the rows chosen are there, and
        // the sink has room for the keys of as many queries, or counts what it has none for.
        unsafe { cuda.launch(self.kernel.name, self.kernel.name, grid, &arguments) }
    }
}

/// Launches over rows of floats.
struct Floats<'a> {
    storage: &'a Storage,
    query: DeviceBuffer<f32>,
    norm: f64,
    metric: u32,
}

impl Scan for Floats<'_> {
    fn scan(&self, cuda: &mut Cuda, chosen: Chosen, sink: &Sink<'_>) -> Result<(), CudaError> {
        let Storage::Float {
            kernel,
            values,
            dim,
            norms,
        } = self.storage
        else {
            return Ok(());
        };
        let most = BLOCKS * cuda.multiprocessors();
        let each = THREADS as usize / WARP;
        let grid = Grid::strided(chosen.count, each, THREADS, most);
        let mut arguments = vec![values.into(), (*dim).into(), norms.as_ref().into()];
        arguments.extend(chosen.arguments());
        arguments.push((&self.query).into());
        arguments.push(self.norm.into());
        arguments.push(self.metric.into());
        arguments.extend(sink.arguments());
        // SAFETY: as above.
        unsafe { cuda.launch("search_float", kernel, grid, &arguments) }
    }
}
