//! The threads of the processor: each takes a tile from reading to measuring, so that it stays in the thread's cache.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output};
use tercet_core::number::Stats;
use tercet_core::palette::{self, Encoded};
use tercet_core::quant::{Applied, Groups, Method, Plan};
use tracing::trace_span;

use super::{ConversionSteps, PALETTE_TILE};
use crate::Error;
use crate::convert::codec::Codec;
use crate::convert::group_plans::GroupPlans;
use crate::convert::measure::Loss;
use crate::convert::runs;
use crate::convert::span::{Span, refuse};
use crate::convert::stats::stats;
use crate::convert::weighted::WeightedTensor;
use crate::parallel::Rows;
use crate::parallel::each::{chunks_mut, items_mut, numbers};
use crate::parallel::palette::encode;
use crate::simd::{Ahead, Backend, Stores};
use crate::source::{TILE, tiles, windows};

/// Minimum number of tiles that are counted into one table of bins: 262,144 values.
const TILES_A_TABLE: usize = 16;

/// All threads of the pool, with [`Backend::default`].
pub(in crate::convert) struct TiledSteps;

impl ConversionSteps for TiledSteps {
    fn whole_palette(&self) -> usize {
        PALETTE_TILE
    }

    fn stream(
        &mut self,
        chunk: Span<'_, '_>,
        codec: &Codec,
        out: &mut [u8],
        loss: Option<&mut Loss>,
    ) -> Result<u64, Error> {
        runs::encode(chunk, codec, out, loss)
    }

    /// Each thread takes some groups at a time.
    fn groups(
        &mut self,
        chunk: Span<'_, '_>,
        groups: Groups,
        method: Method,
        out: Output<'_>,
    ) -> Result<u64, Error> {
        let len = groups.len;
        let count = (TILE / len).max(1);
        // A tile without zero points gets an empty slice.
        let mut zero_points: Vec<&mut [i8]> = out.zero_points.chunks_mut(count).collect();
        zero_points.resize_with(out.scales.len().div_ceil(count), Default::default);
        let tiles = chunks_mut(out.codes, count * len)
            .zip(chunks_mut(out.scales, count))
            .zip(items_mut(&mut zero_points));
        let scratch = || {
            let bins = vec![MagnitudeBin::EMPTY; method.scratch_len(len)];
            (Vec::new(), bins)
        };
        let flushed = tiles
            .reduce_with(
                scratch,
                |(buffer, bins), tile, ((codes, scales), zero_points)| {
                    let first = chunk.first + tile * count * len;
                    let _span = trace_span!("rows", first, len = codes.len()).entered();
                    let groups = Groups {
                        count: scales.len(),
                        len,
                    };
                    let values = chunk.source.view(first, codes.len(), buffer)?;
                    let out = Output {
                        codes,
                        scales,
                        zero_points,
                    };
                    Rows::new(values, groups, out, Backend::default(), Stores::Cached)
                        .quantize(method, bins)
                        .map(|report| report.flushed)
                        .map_err(|error| refuse(chunk.source, first, error))
                },
                // In order, so that the lowest index is reported.
                |a, b| Ok(a? + b?),
            )
            .transpose()?;
        Ok(flushed.unwrap_or(0))
    }

    fn stats(&mut self, part: Span<'_, '_>, with_sum: bool) -> Result<Stats, Error> {
        stats(part, with_sum)
    }

    fn magnitudes(
        &mut self,
        part: Span<'_, '_>,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Error> {
        let Span { source, first, len } = part;
        let empty = || vec![MagnitudeBin::EMPTY; span.bins()];
        for window in windows(first, len) {
            let (_, table) = numbers(0..window.len().div_ceil(TILE))
                // A table per job; merging one takes as long as counting a tile.
                .at_least(TILES_A_TABLE)
                .try_fold(
                    || (Vec::new(), empty()),
                    |(buffer, table), _, tile| {
                        let from = window.start + tile * TILE;
                        let values = source.view(from, TILE.min(window.end - from), buffer)?;
                        Backend::default()
                            .magnitudes(values, span, table)
                            .map_err(|error| refuse(source, first, error))
                    },
                    |(_, a), (_, b)| add(a, &b),
                )?;
            add(bins, &table);
        }
        Ok(())
    }

    fn count(&mut self, part: Span<'_, '_>, plan: &Plan) -> Result<Applied, Error> {
        let Span { source, first, len } = part;
        let applied = tiles(
            source,
            first,
            len,
            |values| {
                let mut codes = [0; TILE];
                let codes = &mut codes[..values.len()];
                Backend::default().apply(plan, values, codes, Stores::Cached, Ahead::STREAM)
            },
            |a, b| {
                let (mut a, b) = (a?, b?);
                a.merge(&b);
                Ok(a)
            },
        )?;
        let applied = applied.unwrap_or_else(|| Ok(Applied::default()));
        applied.map_err(|error| refuse(source, first, error))
    }

    fn apply(
        &mut self,
        chunk: Span<'_, '_>,
        settled: &GroupPlans,
        out: &mut [u8],
        loss: &mut Loss,
    ) -> Result<(), Error> {
        runs::encode(chunk, settled, out, Some(loss)).map(|_| ())
    }

    fn palette(
        &mut self,
        matrix: &WeightedTensor<'_, '_>,
        layout: &palette::IndexMatrix,
        out: palette::Output<'_>,
    ) -> Result<Encoded, Error> {
        encode(Backend::default(), layout, matrix, out, PALETTE_TILE)
            .map_err(|refusal| matrix.refuse(refusal))
    }

    fn name(&self) -> String {
        Backend::default().to_string()
    }

    fn worked(&mut self) -> String {
        self.name()
    }

    fn note(&self) -> Option<String> {
        None
    }
}

/// Adds counts from elsewhere.
pub(super) fn add(bins: &mut [MagnitudeBin], more: &[MagnitudeBin]) {
    for (bin, more) in bins.iter_mut().zip(more) {
        bin.merge(more);
    }
}
