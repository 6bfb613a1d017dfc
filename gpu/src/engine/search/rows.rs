//! Rows on the device; each row of bytes begins at a multiple of 16 bytes.

use std::any::TypeId;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_core::number::{Element, Plain};
use tercet_core::search::{Dot, FloatRows, Hit, Int8Rows, Metric, Rows, TernaryRows, Visitor};
use tercet_core::{bf16, f16};

use crate::engine::device::{Cuda, bytes_of};
use crate::engine::error::CudaError;
use crate::engine::launch::LaunchGrid;
use crate::engine::memory::{DeviceBuffer, Pool};

use super::room::SearchMemory;

/// Bytes that are copied at a time if rows change their pitch.
const CHUNK: usize = 8 << 20;

/// Rows in a device's memory, with the other data of their storage: of a base, or of a part of it.
///
/// Each row of bytes is padded to 16 bytes. The memory that a search uses beside them, some hundred kilobytes for one
/// query and up to 50 MB for 64, is kept with them for the next search.
#[derive(Debug)]
pub struct DeviceRows {
    pub(super) count: usize,
    pub(super) storage: Storage,
    room: Mutex<SearchMemory>,
}

/// The storage of rows.
#[derive(Debug)]
pub(super) enum Storage {
    Int8 {
        rows: Pitched,
        norms: Option<DeviceBuffer<u32>>,
    },
    Ternary {
        rows: Pitched,
        dim: usize,
        magnitudes: Option<DeviceBuffer<u8>>,
        norms: Option<DeviceBuffer<u32>>,
    },
    Float {
        /// The kernels for their type, for one query and for four.
        kernels: [&'static str; 2],
        values: DeviceBuffer<u8>,
        dim: usize,
        norms: Option<DeviceBuffer<f64>>,
    },
}

/// Rows of bytes with zeros after them.
#[derive(Debug)]
pub(super) struct Pitched {
    pub(super) bytes: DeviceBuffer<u8>,
    /// Bytes from the start of a row to that of the next.
    pub(super) pitch: usize,
    /// Bytes of a row without padding.
    pub(super) row: usize,
}

/// Returns the bytes of a row, padded with zeros to the next multiple of 16.
pub(super) const fn pitch(row: usize) -> usize {
    row.next_multiple_of(16)
}

impl DeviceRows {
    /// Copies a range of rows to the device.
    pub(super) fn upload<R: Rows>(
        cuda: &mut Cuda,
        rows: &R,
        range: Range<usize>,
    ) -> Result<Self, CudaError> {
        let count = range.len();
        let mut upload = Upload { cuda, range };
        let storage = rows.visit::<Dot, _>(&[], &mut [], &mut upload)?;
        Ok(Self {
            count,
            storage,
            room: Mutex::default(),
        })
    }

    /// Returns memory for a search. Nobody waits here: searches of these rows already take turns, because each needs
    /// the engine exclusively.
    pub(super) fn room(&self) -> MutexGuard<'_, SearchMemory> {
        // An interrupted search leaves nothing that the next one reads.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of each of their buffers.
    pub(super) fn bytes(&self) -> Vec<usize> {
        match &self.storage {
            Storage::Int8 { rows, norms } => {
                vec![rows.bytes.bytes(), bytes_in(norms)]
            }
            Storage::Ternary {
                rows,
                magnitudes,
                norms,
                ..
            } => {
                vec![rows.bytes.bytes(), bytes_in(magnitudes), bytes_in(norms)]
            }
            Storage::Float { values, norms, .. } => vec![values.bytes(), bytes_in(norms)],
        }
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// True if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Checks that they belong to the engine with this pool.
    pub(super) fn check(&self, pool: &Arc<Pool>) -> Result<(), CudaError> {
        match &self.storage {
            Storage::Int8 { rows, .. } | Storage::Ternary { rows, .. } => {
                rows.bytes.check(pool, rows.bytes.len())
            }
            Storage::Float { values, .. } => values.check(pool, values.len()),
        }
    }

    /// True if rows have this storage and length.
    pub(super) fn fits<R: Rows>(&self, rows: &R) -> bool {
        let mut kind = Kind(self);
        rows.len() == self.count && rows.visit::<Dot, _>(&[], &mut [], &mut kind)
    }
}

/// Returns the bytes of an optional buffer.
fn bytes_in<T: Plain>(buffer: &Option<DeviceBuffer<T>>) -> usize {
    buffer.as_ref().map_or(0, DeviceBuffer::bytes)
}

/// Checks the storage of rows and their number of values.
struct Kind<'a>(&'a DeviceRows);

impl Visitor for Kind<'_> {
    type Output = bool;

    fn int8<M: Metric>(&mut self, rows: Int8Rows<'_>, _: &[i8], _: &mut [Hit<M::Integer>]) -> bool {
        let same = |norms: &Option<DeviceBuffer<u32>>| norms.is_some() == rows.norms().is_some();
        matches!(&self.0.storage, Storage::Int8 { rows: held, norms } if held.row == rows.dim() && same(norms))
    }

    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        _: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> bool {
        matches!(&self.0.storage, Storage::Ternary { dim, .. } if *dim == rows.dim())
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        _: &[f32],
        _: &mut [Hit<M::Float>],
    ) -> bool {
        matches!(&self.0.storage, Storage::Float { dim, kernels, .. } if *dim == rows.dim() && *kernels == kernels_of::<T>())
    }
}

/// Returns the kernels for a type of floats.
fn kernels_of<T: 'static>() -> [&'static str; 2] {
    match TypeId::of::<T>() {
        id if id == TypeId::of::<f16>() => ["search_f16", "search_four_f16"],
        id if id == TypeId::of::<bf16>() => ["search_bf16", "search_four_bf16"],
        _ => ["search_f32", "search_four_f32"],
    }
}

impl Pitched {
    fn upload(cuda: &mut Cuda, bytes: &[u8], row: usize) -> Result<Self, CudaError> {
        let pitch = pitch(row);
        if pitch == row {
            let bytes = cuda.upload(bytes)?;
            return Ok(Self { bytes, pitch, row });
        }
        let out = cuda.room(bytes.len() / row * pitch)?;
        let chunk = (CHUNK / row).max(1);
        for (number, rows) in bytes.chunks(chunk * row).enumerate() {
            let count = rows.len() / row;
            let most = 8 * cuda.multiprocessors();
            let grid = LaunchGrid::strided(count * pitch / 4, 256, 256, most);
            let rows = cuda.upload(rows)?;
            let to = out.at(number * chunk * pitch);
            // SAFETY: `rows` holds `count` rows; as many of `pitch` bytes are written from `to` on, which the buffer
            // has.
            unsafe {
                cuda.launch(
                    "search_rows",
                    "search_rows",
                    grid,
                    &[(&rows).into(), row.into(), count.into(), pitch.into(), to],
                )?;
            }
        }
        Ok(Self {
            bytes: out,
            pitch,
            row,
        })
    }
}

/// Returns the elements of a range of rows.
fn part<'a, T>(elements: &'a [T], range: &Range<usize>, row: usize) -> &'a [T] {
    &elements[range.start * row..range.end * row]
}

struct Upload<'a> {
    cuda: &'a mut Cuda,
    range: Range<usize>,
}

impl Upload<'_> {
    fn table<T: Plain>(
        &mut self,
        table: Option<&[T]>,
    ) -> Result<Option<DeviceBuffer<T>>, CudaError> {
        let part = table.map(|table| part(table, &self.range, 1));
        part.map(|part| self.cuda.upload(part)).transpose()
    }
}

impl Visitor for Upload<'_> {
    type Output = Result<Storage, CudaError>;

    fn int8<M: Metric>(
        &mut self,
        rows: Int8Rows<'_>,
        _: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let values = part(rows.values(), &self.range, rows.dim());
        let norms = self.table(rows.norms())?;
        let rows = Pitched::upload(self.cuda, bytes_of(values), rows.dim())?;
        Ok(Storage::Int8 { rows, norms })
    }

    fn ternary<M: Metric>(
        &mut self,
        rows: TernaryRows<'_>,
        _: &[i8],
        _: &mut [Hit<M::Integer>],
    ) -> Self::Output {
        let (dim, row) = (rows.dim(), TernaryRows::row_bytes(rows.dim()));
        let magnitudes = self.table(rows.magnitudes())?;
        let norms = self.table(rows.norms())?;
        let bytes = part(rows.bytes(), &self.range, row);
        let rows = Pitched::upload(self.cuda, bytes, row)?;
        Ok(Storage::Ternary {
            rows,
            dim,
            magnitudes,
            norms,
        })
    }

    fn float<M: Metric, T: Element>(
        &mut self,
        rows: FloatRows<'_, T>,
        _: &[f32],
        _: &mut [Hit<M::Float>],
    ) -> Self::Output {
        let dim = rows.dim();
        let kernels = kernels_of::<T>();
        let norms = self.table(rows.norms())?;
        let values = bytes_of(part(rows.values(), &self.range, dim));
        let values = self.cuda.upload(values)?;
        Ok(Storage::Float {
            kernels,
            values,
            dim,
            norms,
        })
    }
}
