//! Values where they lie, and what brings them into memory.

use rayon::prelude::*;

use super::{CHUNK, Kind, Source, TILE};
use crate::Error;
use crate::dtype::DType;

impl Source<'_> {
    /// The `len` values from `start` on: where they lie, if as aligned `f32` of this machine, else read into `buffer`.
    pub(crate) fn view<'b>(
        &'b self,
        start: usize,
        len: usize,
        buffer: &'b mut Vec<f32>,
    ) -> Result<&'b [f32], Error> {
        if let (Kind::Plain, DType::F32) = (self.kind, self.tensor.dtype)
            && cfg!(target_endian = "little")
        {
            let bytes = &self.tensor.bytes[start * 4..][..len * 4];
            // SAFETY: every pattern of four bytes is an f32.
            let (before, values, after) = unsafe { bytes.align_to() };
            if before.is_empty() && after.is_empty() {
                self.page_in(start);
                return Ok(values);
            }
        }
        buffer.resize(len, 0.0);
        self.read(start, buffer)?;
        Ok(buffer)
    }

    /// Where a chunk begins, reads all of its bytes in: whoever comes first to a chunk, so that the others compute meanwhile.
    pub(super) fn page_in(&self, start: usize) {
        // Of these the bytes come in the values' order.
        let ordered = matches!(
            self.kind,
            Kind::Plain | Kind::Blocks(_) | Kind::Codes { .. }
        );
        let len = self.values();
        if ordered && start.is_multiple_of(CHUNK) && start < len && len >= CHUNK {
            let end = len.min(start + CHUNK);
            let (from, to) = (self.bytes_of(start) as usize, self.bytes_of(end) as usize);
            self.model.page_in(&self.tensor.bytes[from..to]);
        }
    }
}

/// Runs `work` over tiles of the `len` values from `first` on, on all threads, and merges what it gives in order;
/// `None` without values.
pub(crate) fn tiles<T: Send>(
    source: &Source<'_>,
    first: usize,
    len: usize,
    work: impl Fn(&[f32]) -> T + Sync + Send,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> Result<Option<T>, Error> {
    (0..len.div_ceil(TILE))
        .into_par_iter()
        .map_init(Vec::new, |values, tile| {
            let from = tile * TILE;
            let len = TILE.min(len - from);
            Ok(work(source.view(first + from, len, values)?))
        })
        .try_reduce_with(|a, b| Ok(merge(a, b)))
        .transpose()
}
