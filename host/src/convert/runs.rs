//! Values whose place alone says how they are coded, run by run: a tile stays in a thread's cache from reading to measuring.

use tercet_core::number::RUN;
use tercet_core::quant::Comparison;
use tracing::trace_span;

use super::measure::{Loss, compare};
use super::span::Span;
use crate::Error;
use crate::parallel::each::chunks_mut;
use crate::source::{Source, TILE};

/// Codes tiles of a tensor, in any order.
pub(crate) trait Coder: Sync {
    /// Bytes of so many values; of a [`TILE`] whole ones.
    fn bytes(&self, values: usize) -> usize;

    /// Codes the values that begin at `first`; returns how many blocks were flushed.
    fn encode(&self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String>;

    /// Restores the values that begin at `first`.
    fn restore(&self, first: usize, bytes: &[u8], out: &mut [f32]) -> Result<(), String>;
}

/// Codes a chunk, which begins where a run does, on all threads, into as many bytes as it takes; returns how many
/// blocks were flushed. Measures it too where there is a `loss` to go on with.
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
    // In order, so that the lowest index is the one reported.
    for result in results {
        let (more, comparison) = result?;
        flushed += more;
        if let Some(loss) = &mut loss {
            loss.append(&comparison);
        }
    }
    Ok(flushed)
}

/// What a thread works in.
#[derive(Default)]
struct Scratch {
    values: Vec<f32>,
    restored: Vec<f32>,
}

impl Scratch {
    /// Codes and measures a run, or what is left of the last one.
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
