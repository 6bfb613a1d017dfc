//! Values whose encoding depends only on their place, run by run: a tile stays in a thread's cache from reading to
//! measuring.

use tercet_core::number::RUN;
use tercet_core::quant::Comparison;
use tracing::trace_span;

use super::measure::{Loss, compare};
use super::span::Span;
use crate::Error;
use crate::parallel::each::chunks_mut;
use crate::source::{Source, TILE};

/// Encodes tiles of a tensor, in any order.
pub(crate) trait Coder: Sync {
    /// Returns the bytes of so many values; whole bytes for a [`TILE`].
    fn bytes(&self, values: usize) -> usize;

    /// Encodes the values that begin at `first`; returns the number of flushed blocks.
    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String>;

    /// Restores the values that begin at `first`.
    fn restore(&self, first: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String>;
}

/// Encodes a chunk, which begins at the start of a run, on all threads, into as many bytes as it takes; returns the
/// number of flushed blocks. If there is a `loss` to continue, also measures the chunk.
pub(super) fn encode(
    chunk: Span<'_, '_>,
    coder: &impl Coder,
    out: &mut [u8],
    mut loss: Option<&mut Loss>,
) -> Result<u64, Error> {
    let Span { source, first, len } = chunk;
    let measured = loss.is_some();
    let runs = chunks_mut(out, coder.bytes(RUN));
    let results = runs.gather_with(Scratch::default, |scratch, run, bytes| {
        let at = run * RUN;
        scratch.run(
            source,
            coder,
            (first + at, RUN.min(len - at)),
            bytes,
            measured,
        )
    });
    let mut flushed = 0;
    // In order, so that the lowest index is reported.
    for result in results {
        let (more, comparison) = result?;
        flushed += more;
        if let Some(loss) = &mut loss {
            loss.append(&comparison);
        }
    }
    Ok(flushed)
}

/// Scratch of a thread.
#[derive(Default)]
struct Scratch {
    values: Vec<f32>,
    restored: Vec<f32>,
}

impl Scratch {
    /// Encodes and measures a run, or the rest of the last one.
    fn run(
        &mut self,
        source: &Source<'_>,
        coder: &impl Coder,
        (first, len): (usize, usize),
        bytes: &mut [u8],
        measured: bool,
    ) -> Result<(u64, Comparison), Error> {
        let _span = trace_span!("code", first, len, measured).entered();
        let refuse = |reason| Error::tensor(source.path, source.tensor.name, reason);
        let (mut comparison, mut flushed) = (Comparison::new(), 0);
        for (tile, bytes) in bytes.chunks_mut(coder.bytes(TILE)).enumerate() {
            let (at, from) = (tile * TILE, first + tile * TILE);
            let values = source.view(from, TILE.min(len - at), &mut self.values)?;
            flushed += coder.encode(from, values, bytes).map_err(refuse)?;
            if measured {
                self.restored.resize(values.len(), 0.0);
                coder
                    .restore(from, bytes, &mut self.restored)
                    .map_err(refuse)?;
                compare(source, first, &mut comparison, values, &self.restored)?;
            }
        }
        Ok((flushed, comparison))
    }
}
