//! Queries on the device, and the launches that give them keys.

use tercet_core::number::{Element, sum_of_squares};
use tercet_core::scalar;
use tercet_core::search::{FloatRows, Hit, Int8Rows, Metric, Rows, TernaryRows, Visitor};

use super::bar;
use super::rows::{DeviceRows, Pitched, Storage};
use super::scan::{Chosen, Lists, Scan, Sink, Wanted, find, find_at_once};
use crate::engine::device::Cuda;
use crate::engine::error::CudaError;
use crate::engine::launch::{Argument, Grid};
use crate::engine::memory::DeviceBuffer;

/// Queries of a launch, at most: of the kernels on tensor cores, and of those without.
pub(super) const QUERIES: usize = 64;
const FEW: usize = 8;
/// More queries than these go to tensor cores: from there on the other kernels wait for shared memory, not for the rows.
const BORDER: usize = 4;
/// The first capability with int8 products of 16 × 8 × 32 on tensor cores.
const TENSOR_CORES: (u32, u32) = (8, 0);
/// Rows of a tile on tensor cores, and bytes of what a block has of them (as in `kernels/cuda/search_mma.cu`).
const TILE: usize = 128;
const PANELS: usize = 4 * 128 * 80;
/// The most dynamic shared memory for tensor cores: two blocks a multiprocessor fit those of capability 9.0.
const MOST_SHARED: usize = 96 << 10;
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
        kernel: &Kernel<'a>,
    ) -> Result<Vec<Vec<u32>>, CudaError> {
        let mut lists = Vec::new();
        let mut left = queries;
        while !left.is_empty() {
            let way = self.way(kernel, rows, left.len() / dim);
            let (these, later) = left.split_at(left.len().min(way.queries * dim));
            left = later;
            // The room of many queries may be more than there is. Then, and for queries that more rows fit than have room, few at a time.
            let mut found = match self.found::<M>(these, dim, rows, kernel, &way) {
                Err(error) if way.tiles && error.is_out_of_memory() => {
                    vec![None; these.len() / dim]
                }
                found => found?,
            };
            let few = Way::few(kernel, rows);
            let missing: Vec<_> = (0..found.len()).filter(|&at| found[at].is_none()).collect();
            for numbers in missing.chunks(few.queries) {
                let query = |&at: &usize| &these[at * dim..][..dim];
                let part: Vec<i8> = numbers.iter().flat_map(query).copied().collect();
                let part = self.found::<M>(&part, dim, rows, kernel, &few)?;
                for (&at, list) in numbers.iter().zip(part) {
                    found[at] = list;
                }
            }
            lists.extend(found.into_iter().map(Option::unwrap_or_default));
        }
        Ok(lists)
    }

    /// How so many queries are asked.
    fn way(&self, kernel: &Kernel<'_>, rows: &Pitched, queries: usize) -> Way {
        let tiles = || {
            let room = MOST_SHARED.min(self.cuda.shared as usize);
            (queries > BORDER && self.cuda.capability() >= TENSOR_CORES)
                .then(|| Way::tiles(kernel, rows, room))
                .flatten()
        };
        tiles().unwrap_or_else(|| Way::few(kernel, rows))
    }

    /// The lists of queries that are one launch's: all, or on tensor cores those that have room.
    fn found<M: Metric>(
        &mut self,
        queries: &[i8],
        dim: usize,
        rows: &Pitched,
        kernel: &Kernel<'a>,
        way: &Way,
    ) -> Result<Lists, CudaError> {
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
                    None => return Ok(vec![Some(Vec::new()); queries.count]),
                }
            }
        };
        let counts = (queries.count, queries.padded);
        let scan = Integers {
            kernel,
            way,
            queries: &queries,
            metric: bar::number(M::KIND),
        };
        let (cuda, rows) = (&mut *self.cuda, self.on_device.count);
        match way.tiles {
            true => find_at_once(cuda, rows, counts, wanted, &scan),
            false => find(cuda, rows, counts, wanted, &scan)
                .map(|lists| lists.into_iter().map(Some).collect()),
        }
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
            names: ["search_int8", "search_mma_int8"],
            rows: vec![
                (&bytes.bytes).into(),
                bytes.pitch.into(),
                norms.as_ref().into(),
            ],
            runs: 1,
        };
        self.integers::<M>(queries, rows.dim(), bytes, &kernel)
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
            names: ["search_ternary", "search_mma_ternary"],
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
        self.integers::<M>(queries, *dim, rows, &kernel)
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

/// The kernels for rows of integers.
struct Kernel<'a> {
    /// That for few queries, and that for many, of the module `search_mma`.
    names: [&'static str; 2],
    /// What they take of rows.
    rows: Vec<Argument<'a>>,
    /// Runs of a row's values that lie in one place of its bytes; with more than one they take the sums of queries.
    runs: usize,
}

/// How queries are asked: the most at a time, on tensor cores or not, and bytes of shared memory beside and for each query.
struct Way {
    queries: usize,
    tiles: bool,
    shared: usize,
    each: usize,
}

impl Way {
    /// By products of four bytes.
    fn few(kernel: &Kernel<'_>, rows: &Pitched) -> Self {
        let each = kernel.runs * rows.pitch;
        // A query has at most 43,690 values, so that one has room.
        let most = [FEW, 4, 2].into_iter().find(|most| most * each <= SHARED);
        Self {
            queries: most.unwrap_or(1),
            tiles: false,
            shared: 0,
            each,
        }
    }

    /// By tensor cores; `None` where `room` bytes of shared memory do not hold more queries than the others would take.
    fn tiles(kernel: &Kernel<'_>, rows: &Pitched, room: usize) -> Option<Self> {
        let each = kernel.runs * rows.pitch.next_multiple_of(32) + 16;
        let queries = [QUERIES, 32, 16]
            .into_iter()
            .find(|most| PANELS + most * each <= room)?;
        Some(Self {
            queries,
            tiles: true,
            shared: PANELS,
            each,
        })
    }
}

/// Launches over rows of integers.
struct Integers<'a> {
    kernel: &'a Kernel<'a>,
    way: &'a Way,
    queries: &'a Queries,
    metric: u32,
}

impl Scan for Integers<'_> {
    fn scan(&self, cuda: &mut Cuda, chosen: Chosen, sink: &Sink<'_>) -> Result<(), CudaError> {
        let (queries, way) = (self.queries, self.way);
        let [few, many] = self.kernel.names;
        // The kernel for many has places for 16 at least.
        let (module, kernel, rows, places) = match way.tiles {
            true => ("search_mma", many, TILE, queries.padded.max(16)),
            false => (few, few, THREADS as usize / TEAM, queries.padded),
        };
        let most = BLOCKS * cuda.multiprocessors();
        let grid = Grid::strided(chosen.count, rows, THREADS, most);
        let grid = grid.shared((way.shared + places * way.each) as u32);
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
        // the sink has room for the keys of as many queries, or counts what it has none for. Shared memory has the kernel's panels and
        // the queries' places.
        unsafe { cuda.launch(module, kernel, grid, &arguments) }
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
