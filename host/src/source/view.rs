//! Values in place, and paging them in.

use std::ops::Range;

use tercet_core::number::Element;

use super::{CHUNK, Kind, Source, TILE};
use crate::Error;
use crate::dtype::DType;
use crate::parallel::each::numbers;

/// Bytes that stay mapped behind a pass: a tensor of at most this size stays available for the next one.
const BEHIND: usize = 16 << 20;

impl Source<'_> {
    /// Returns the `len` values from `start` on: in place if they are stored as aligned `f32` of this machine,
    /// otherwise read into `buffer`.
    pub(crate) fn view<'b>(
        &'b self,
        start: usize,
        len: usize,
        buffer: &'b mut Vec<f32>,
    ) -> Result<&'b [f32], Error> {
        if let Some(values) = self.lying(start, len) {
            return Ok(values);
        }
        buffer.resize(len, 0.0);
        self.read(start, buffer)?;
        Ok(buffer)
    }

    /// Returns the `len` values from `start` on in place, if they are stored as aligned `f32` of this machine; pages
    /// them in.
    pub(crate) fn lying(&self, start: usize, len: usize) -> Option<&[f32]> {
        self.lying_as(DType::F32, start, len)
    }

    /// As [`Source::lying`], for other elements; `dtype` is the files' type of `T`.
    pub(crate) fn lying_as<T: Element>(
        &self,
        dtype: DType,
        start: usize,
        len: usize,
    ) -> Option<&[T]> {
        let values = self.mapped_as(dtype, start, len)?;
        self.page_in(start, len);
        Some(values)
    }

    /// As [`Source::lying`], without paging in.
    pub(super) fn mapped(&self, start: usize, len: usize) -> Option<&[f32]> {
        self.mapped_as(DType::F32, start, len)
    }

    fn mapped_as<T: Element>(&self, dtype: DType, start: usize, len: usize) -> Option<&[T]> {
        let plain = matches!(self.kind, Kind::Plain) && self.tensor.dtype == dtype;
        // Rows that are read in another order are not in place.
        if !plain || self.head.is_some() || cfg!(target_endian = "big") {
            return None;
        }
        let bytes = &self.tensor.bytes[start * T::BYTES..][..len * T::BYTES];
        // SAFETY: elements are floats, and every pattern of their bytes is one.
        let (before, values, after) = unsafe { bytes.align_to() };
        (before.is_empty() && after.is_empty()).then_some(values)
    }

    /// If the `len` values from `start` on enter a chunk, reads all of its bytes. The first thread at a chunk does
    /// this, and the others compute meanwhile.
    pub(super) fn page_in(&self, start: usize, len: usize) {
        // For these the bytes have the order of the values.
        let ordered = matches!(
            self.kind,
            Kind::Plain | Kind::Blocks(_) | Kind::Codes { .. }
        );
        let (first, all) = (start.next_multiple_of(CHUNK), self.values());
        if ordered && first < start + len && all >= CHUNK {
            let end = all.min(first + CHUNK);
            self.page_in_bytes(self.bytes_of(first) as usize..self.bytes_of(end) as usize);
        }
    }

    /// Reads bytes of the tensor, and releases those far behind, as a pass in order needs it. The system, which is
    /// asked for bytes in order, reads ahead by itself.
    ///
    /// Asking it for more with `MADV_WILLNEED` halved the rate from a disk for a process with less memory than the
    /// file: it then fills memory page by page, not in the large pieces of its own reading ahead (Linux 6.18).
    pub(crate) fn page_in_bytes(&self, part: Range<usize>) {
        let bytes = self.tensor.bytes;
        let behind = part.start.saturating_sub(BEHIND);
        self.model.page_in(&bytes[part.clone()]);
        self.model
            .release(&bytes[behind.saturating_sub(part.len())..behind]);
    }

    /// Releases the tensor's pages: the process keeps them no longer, but the system may.
    pub(crate) fn release(&self) {
        self.model.release(self.tensor.bytes);
    }
}

/// Values that all threads process together, so that a pass goes through memory and over the disk from front to end: 16
/// MiB as `f32`.
const WINDOW: usize = 4 * CHUNK;

/// Returns the windows of a pass over `len` values from `first` on, in order.
pub(crate) fn windows(first: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = first + len;
    (first..end)
        .step_by(WINDOW)
        .map(move |at| at..end.min(at + WINDOW))
}

/// Runs `work` over tiles of the `len` values from `first` on, on all threads, and merges the results in order; `None`
/// without values.
pub(crate) fn tiles<T: Send + 'static>(
    source: &Source<'_>,
    first: usize,
    len: usize,
    work: impl Fn(&[f32]) -> T + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Result<Option<T>, Error> {
    let mut all = None;
    for window in windows(first, len) {
        let found = numbers(0..window.len().div_ceil(TILE))
            .reduce_with(
                Vec::new,
                |values, _, tile| {
                    let from = window.start + tile * TILE;
                    let len = TILE.min(window.end - from);
                    Ok::<_, Error>(work(source.view(from, len, values)?))
                },
                // In order and to the end, so that the lowest place is reported.
                |a, b| Ok(merge(a?, b?)),
            )
            .transpose()?;
        all = match (all, found) {
            (Some(all), Some(found)) => Some(merge(all, found)),
            (all, found) => found.or(all),
        };
    }
    Ok(all)
}
