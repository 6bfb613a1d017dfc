//! Queries on the device, and the launches that compute their keys.

use tercet_core::arch::plain;

use super::room::Packed;
use super::rows::{Pitched, Storage};
use super::scan::{Chosen, Scan};
use crate::engine::device::Cuda;
use crate::engine::error::CudaError;
use crate::engine::launch::{Argument, LaunchGrid};
use crate::engine::memory::DeviceBuffer;

/// Maximum number of queries of a launch: of the kernels on tensor cores, and of those without.
pub(super) const QUERIES: usize = 64;
const FEW: usize = 8;
/// For rows of floats.
pub(super) const FLOATS: usize = 4;
/// More queries than these use tensor cores: from there on the other kernels are limited by shared memory, not by
/// reading rows.
const BORDER: usize = 4;
/// The first capability with int8 products of 16 × 8 × 32 on tensor cores.
const TENSOR_CORES: (u32, u32) = (8, 0);
/// Rows of a tile on tensor cores, and bytes of these that a block loads at a time (as in
/// `kernels/cuda/search_mma.cu`).
const TILE: usize = 128;
const PANELS: usize = 4 * 128 * 80;
/// Maximum dynamic shared memory for tensor cores: with it, two blocks fit a multiprocessor of capability 9.0.
const MOST_SHARED: usize = 96 << 10;
/// Threads per block, and of those that share a row of bytes.
const THREADS: u32 = 256;
const TEAM: usize = 8;
/// Threads that share a row of floats.
const WARP: usize = 32;
/// Dynamic shared memory that every device gives a block.
const SHARED: usize = 48 << 10;

/// Storage of a query of `dim` values: in runs of `run`, each padded with zeros up to `pitch`.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) dim: usize,
    pub(super) runs: usize,
    pub(super) run: usize,
    pub(super) pitch: usize,
}

/// Queries in the form of the kernels: a power of two of them, the last of which may be zeros as padding. They are part
/// of the upload for a search.
pub(super) struct Queries {
    pub(super) count: usize,
    pub(super) padded: usize,
    /// Places of values, sums and norms.
    values: usize,
    sums: usize,
    norms: usize,
    /// The norms.
    pub(super) squares: Vec<u32>,
}

impl Queries {
    pub(super) fn pack(queries: &[i8], order: Order, packed: &mut Packed) -> Self {
        let each = order.runs * order.pitch;
        let count = queries.len() / order.dim;
        let padded = count.next_power_of_two();
        let mut values = vec![0_i8; padded * each];
        let (mut sums, mut squares) = (vec![0; padded], vec![0; padded]);
        for (number, query) in queries.chunks_exact(order.dim).enumerate() {
            let room = values[number * each..][..each].chunks_exact_mut(order.pitch);
            for (from, to) in query.chunks(order.run).zip(room) {
                to[..from.len()].copy_from_slice(from);
            }
            sums[number] = query.iter().map(|&x| i32::from(x)).sum();
            squares[number] = plain::norm(query);
        }
        Self {
            count,
            padded,
            values: packed.push(&values),
            sums: packed.push::<i32>(&sums),
            norms: packed.push(&squares),
            squares,
        }
    }
}

/// The kernels for rows of integers.
pub(super) struct Kernel<'a> {
    /// The kernel for few queries, and the one for many, of the module `search_mma`.
    pub(super) names: [&'static str; 2],
    /// A kernel of the first one's module for exactly one query; it has no argument for their number.
    pub(super) one: Option<&'static str>,
    /// Their arguments for the rows.
    pub(super) rows: Vec<Argument<'a>>,
    /// Number of runs of values that share the bytes of a row. With more than one the kernels use the sums of queries.
    pub(super) runs: usize,
}

/// How queries are processed: the maximum number at a time, on tensor cores or not, and the bytes of shared memory in
/// total and per query.
pub(super) struct Way {
    pub(super) queries: usize,
    pub(super) tiles: bool,
    pub(super) shared: usize,
    pub(super) each: usize,
}

impl Way {
    /// Returns the way for so many queries.
    pub(super) fn of(cuda: &Cuda, kernel: &Kernel<'_>, rows: &Pitched, queries: usize) -> Self {
        let room = MOST_SHARED.min(cuda.shared as usize);
        (queries > BORDER && cuda.capability() >= TENSOR_CORES)
            .then(|| Self::tiles(kernel, rows, room))
            .flatten()
            .unwrap_or_else(|| Self::few(kernel, rows))
    }

    /// With products of four bytes.
    pub(super) fn few(kernel: &Kernel<'_>, rows: &Pitched) -> Self {
        let each = kernel.runs * rows.pitch;
        // A query has at most 43,690 values, so one has room.
        let most = [FEW, 4, 2].into_iter().find(|most| most * each <= SHARED);
        Self {
            queries: most.unwrap_or(1),
            tiles: false,
            shared: 0,
            each,
        }
    }

    /// With tensor cores; `None` if `room` bytes of shared memory do not hold more queries than the other kernels
    /// process.
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
pub(super) struct Integers<'a> {
    pub(super) kernel: &'a Kernel<'a>,
    pub(super) way: &'a Way,
    pub(super) queries: &'a Queries,
    pub(super) metric: u32,
}

impl Scan for Integers<'_> {
    fn scan(
        &self,
        cuda: &mut Cuda,
        memory: &DeviceBuffer<u8>,
        chosen: Chosen,
        sink: [Argument<'_>; 5],
    ) -> Result<(), CudaError> {
        let (queries, way) = (self.queries, self.way);
        let [few, many] = self.kernel.names;
        let one = self.kernel.one.filter(|_| queries.padded == 1);
        let team = THREADS as usize / TEAM;
        // The kernel for many queries has places for at least 16.
        let (module, kernel, rows, places) = match (way.tiles, one) {
            (true, _) => ("search_mma", many, TILE, queries.padded.max(16)),
            (false, Some(one)) => (few, one, team, 1),
            (false, None) => (few, few, team, queries.padded),
        };
        let shared = (way.shared + places * way.each) as u32;
        let most = cuda.resident_blocks(module, kernel, THREADS, shared)?;
        let grid = LaunchGrid::strided(chosen.count, rows, THREADS, most).shared(shared);
        let mut arguments = self.kernel.rows.clone();
        arguments.extend(chosen.arguments());
        arguments.push(memory.at(queries.values));
        if self.kernel.runs > 1 {
            arguments.push(memory.at(queries.sums));
        }
        arguments.push(memory.at(queries.norms));
        if way.tiles || one.is_none() {
            arguments.push((queries.padded as u32).into());
        }
        arguments.push(self.metric.into());
        arguments.extend(sink);
        // SAFETY: rows, queries and sums lie as the kernel says, which `DeviceRows` and `Queries` see to; the rows
        // chosen are there, and the sink has room for the keys of as many queries, or counts what it has none for.
        // Shared memory has the kernel's panels and the queries' places.
        unsafe { cuda.launch(module, kernel, grid, &arguments) }
    }
}

/// Launches over rows of floats.
pub(super) struct Floats<'a> {
    pub(super) storage: &'a Storage,
    /// One or four queries, the last of which may be zeros as padding.
    pub(super) padded: usize,
    /// Place of their values and norms in the upload for a search.
    pub(super) values: usize,
    pub(super) norms: usize,
    pub(super) metric: u32,
}

impl Scan for Floats<'_> {
    fn scan(
        &self,
        cuda: &mut Cuda,
        memory: &DeviceBuffer<u8>,
        chosen: Chosen,
        sink: [Argument<'_>; 5],
    ) -> Result<(), CudaError> {
        let Storage::Float {
            kernels: [one, four],
            values,
            dim,
            norms,
        } = self.storage
        else {
            return Ok(());
        };
        let kernel = if self.padded == 1 { one } else { four };
        let most = cuda.resident_blocks("search_float", kernel, THREADS, 0)?;
        let each = THREADS as usize / WARP;
        let grid = LaunchGrid::strided(chosen.count, each, THREADS, most);
        let mut arguments = vec![values.into(), (*dim).into(), norms.as_ref().into()];
        arguments.extend(chosen.arguments());
        arguments.push(memory.at(self.values));
        arguments.push(memory.at(self.norms));
        arguments.push(self.metric.into());
        arguments.extend(sink);
        // SAFETY: as above.
        unsafe { cuda.launch("search_float", kernel, grid, &arguments) }
    }
}
