//! A given engine: it receives the values of a chunk, and the processor reads them and measures the loss.

use tercet_core::engine::{
    MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem, Refused,
};
use tercet_core::number::Stats;
use tercet_core::palette::{self, Encoded};
use tercet_core::quant::{self, Applied, Groups, Method, Plan, Report};

use super::ConversionSteps;
use super::tiled::{TiledSteps, add};
use crate::Error;
use crate::convert::codec::{self, Codec};
use crate::convert::group_plans::GroupPlans;
use crate::convert::measure::Loss;
use crate::convert::runs::Coder;
use crate::convert::span::{Span, refuse};
use crate::convert::weighted::{Refusal, WeightedTensor};
use crate::engine::{EngineError, FlowEngine, WithFallback};
use crate::floats;
use crate::parallel::each::{chunks, chunks_mut};
use crate::parallel::palette::Matrix;
use crate::source::{self, CHUNK, Restored, TILE, on_engine, signed_mut};

/// An engine, and the processor's threads for chunks that it has no room for, and for floats that are only narrowed.
pub(in crate::convert) struct ChunkedSteps<'e, E> {
    shared: WithFallback<'e, E>,
    /// A chunk, if it is not in memory as `f32`.
    values: Vec<f32>,
    /// Codes of a part that is only surveyed.
    codes: Vec<i8>,
}

impl<'e, E: FlowEngine> ChunkedSteps<'e, E> {
    pub(in crate::convert) fn new(engine: &'e mut E) -> Self {
        Self {
            shared: WithFallback::new(engine),
            values: Vec::new(),
            codes: Vec::new(),
        }
    }

    /// Lets the engine work on each chunk of a part as a separate group: `step` does it, and `fallback` does chunks
    /// that the engine has no room for.
    fn parts<T>(
        &mut self,
        part: Span<'_, '_>,
        step: impl Fn(&mut E::Tensor<'_, f32>) -> Result<T, EngineError>,
        fallback: impl Fn(Span<'_, '_>) -> Result<T, Error>,
        mut merge: impl FnMut(T),
    ) -> Result<(), Error> {
        for first in (part.first..part.end()).step_by(CHUNK) {
            let len = CHUNK.min(part.end() - first);
            let chunk = Span {
                first,
                len,
                source: part.source,
            };
            let values = gather(&mut self.shared, chunk, &mut self.values)?;
            self.codes.resize(len, 0);
            let out = Output {
                codes: &mut self.codes,
                scales: &mut [0.0],
                zero_points: &mut [],
            };
            let done = (Groups::tensor(len).map_err(EngineError::from)).and_then(|groups| {
                let mut tensor = self
                    .shared
                    .engine
                    .tensor(values, groups, out)
                    .map_err(Into::into)?;
                step(&mut tensor)
            });
            let refused = |fault| refused(chunk, fault);
            match self.shared.settle(done, refused)? {
                Some(done) => merge(done),
                None => merge(fallback(chunk)?),
            }
        }
        Ok(())
    }
}

/// Codes that become floats.
impl<E: FlowEngine> ChunkedSteps<'_, E> {
    /// The engine restores a chunk, and the processor narrows it if needed.
    fn restore(
        &mut self,
        chunk: Span<'_, '_>,
        codec: &Codec,
        out: &mut [u8],
    ) -> Result<u64, Error> {
        let Span { source, first, len } = chunk;
        let restored = match floats::room(codec.dtype(), out) {
            Some(values) => {
                let restored = source::restore(&mut self.shared, source, first, values)?;
                if matches!(restored, Restored::Done) {
                    finite(chunk, values)?;
                }
                restored
            }
            None => {
                self.values.resize(len, 0.0);
                let values = &mut self.values;
                let restored = source::restore(&mut self.shared, source, first, values)?;
                if matches!(restored, Restored::Done) {
                    narrow(chunk, codec, values, out)?;
                }
                restored
            }
        };
        match restored {
            Restored::Done => Ok(0),
            Restored::Not => TiledSteps.stream(chunk, codec, out, None),
            Restored::Refused(error) => {
                TiledSteps.stream(chunk, codec, out, None)?;
                Err(error)
            }
        }
    }
}

/// Refuses values as [`floats::narrow`] to `f32` does, which changes no other value.
fn finite(chunk: Span<'_, '_>, values: &[f32]) -> Result<(), Error> {
    let bad = |values: &[f32]| values.iter().position(|x| !x.is_finite());
    chunks(values, TILE).try_each(|tile, values| match bad(values) {
        None => Ok(()),
        Some(index) => {
            let (source, place) = (chunk.source, chunk.first + tile * TILE + index);
            Err(Error::not_finite(source.path, source.tensor.name, place))
        }
    })
}

/// Narrows restored values, on all threads.
fn narrow(chunk: Span<'_, '_>, codec: &Codec, values: &[f32], out: &mut [u8]) -> Result<(), Error> {
    let tiles = chunks(values, TILE).zip(chunks_mut(out, codec.bytes(TILE)));
    let narrowed = tiles.try_each(|tile, (values, out)| {
        let narrowed = codec.encode(chunk.first + tile * TILE, values, out);
        narrowed.map(|_| ())
    });
    narrowed.map_err(|reason| Error::tensor(chunk.source.path, chunk.source.tensor.name, reason))
}

/// Returns the error for values that begin at the start of `chunk`.
fn refused(chunk: Span<'_, '_>, fault: EngineError) -> Error {
    match fault {
        EngineError::Refused(Refused::Quantize(error)) => refuse(chunk.source, chunk.first, error),
        other => Error::tensor(chunk.source.path, chunk.source.tensor.name, other),
    }
}

/// Returns the values of a chunk.
fn gather<'b, E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    chunk: Span<'b, '_>,
    buffer: &'b mut Vec<f32>,
) -> Result<&'b [f32], Error> {
    source::gather(shared, chunk.source, chunk.first, chunk.len, buffer)
}

impl<E: FlowEngine> ConversionSteps for ChunkedSteps<'_, E> {
    fn whole_palette(&self) -> usize {
        usize::MAX
    }

    fn stream(
        &mut self,
        chunk: Span<'_, '_>,
        codec: &Codec,
        out: &mut [u8],
        loss: Option<&mut Loss>,
    ) -> Result<u64, Error> {
        let (format, rule, scale) = match *codec {
            Codec::Blocks {
                format,
                rule,
                scale,
            } => (format, rule, scale),
            Codec::Floats(_) if on_engine(self.shared.engine, chunk.source) => {
                return self.restore(chunk, codec, out);
            }
            Codec::Floats(_) => {
                self.shared.by_processor();
                return TiledSteps.stream(chunk, codec, out, loss);
            }
        };
        let values = gather(&mut self.shared, chunk, &mut self.values)?;
        let engine = &mut *self.shared.engine;
        let done = engine.encode_blocks(format, rule, scale, values, out);
        let refused = |fault| match fault {
            EngineError::Refused(Refused::Block(error)) => Error::tensor(
                chunk.source.path,
                chunk.source.tensor.name,
                codec::refusal(format, chunk.first, error),
            ),
            other => refused(chunk, other),
        };
        let Some(done) = self.shared.settle(done.map_err(Into::into), refused)? else {
            return TiledSteps.stream(chunk, codec, out, loss);
        };
        if let Some(loss) = loss {
            let bytes: &[u8] = out;
            loss.chunk(chunk, |at, _, restored| {
                let bytes = &bytes[codec.bytes(at - chunk.first)..][..codec.bytes(restored.len())];
                codec.restore(at, bytes, restored)
            })?;
        }
        Ok(done.flushed as u64)
    }

    fn groups(
        &mut self,
        chunk: Span<'_, '_>,
        groups: Groups,
        method: Method,
        out: Output<'_>,
    ) -> Result<u64, Error> {
        let values = gather(&mut self.shared, chunk, &mut self.values)?;
        let mut bins = vec![MagnitudeBin::EMPTY; method.scratch_len(groups.len)];
        let lent = Output {
            codes: out.codes,
            scales: out.scales,
            zero_points: out.zero_points,
        };
        let engine = &mut *self.shared.engine;
        let done = (|| -> Result<Report, <E as QuantizeEngine>::Error> {
            let mut tensor = engine.tensor(values, groups, lent)?;
            let report = quant::quantize(&mut tensor, method, &mut bins)?;
            tensor.finish()?;
            Ok(report)
        })();
        match self
            .shared
            .settle(done.map_err(Into::into), |fault| refused(chunk, fault))?
        {
            Some(report) => Ok(report.flushed),
            None => TiledSteps.groups(chunk, groups, method, out),
        }
    }

    fn stats(&mut self, part: Span<'_, '_>, with_sum: bool) -> Result<Stats, Error> {
        let mut all = Stats::EMPTY;
        self.parts(
            part,
            |tensor| {
                let stats = match with_sum {
                    true => tensor.stats(0),
                    false => tensor.extremes(0),
                };
                stats.map_err(Into::into)
            },
            |part| TiledSteps.stats(part, with_sum),
            |stats| all.merge(&stats),
        )?;
        Ok(all)
    }

    fn magnitudes(
        &mut self,
        part: Span<'_, '_>,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Error> {
        // Count into a separate table, so that a part that ran out of room in the middle does not count.
        let empty = || vec![MagnitudeBin::EMPTY; span.bins()];
        self.parts(
            part,
            |tensor| {
                let mut table = empty();
                tensor.magnitudes(0, span, &mut table).map_err(Into::into)?;
                Ok(table)
            },
            |part| {
                let mut table = empty();
                TiledSteps.magnitudes(part, span, &mut table)?;
                Ok(table)
            },
            |table| add(bins, &table),
        )
    }

    fn count(&mut self, part: Span<'_, '_>, plan: &Plan) -> Result<Applied, Error> {
        let mut all = Applied::default();
        self.parts(
            part,
            |tensor| tensor.apply(0, plan).map_err(Into::into),
            |part| TiledSteps.count(part, plan),
            |applied| all.merge(&applied),
        )?;
        Ok(all)
    }

    fn apply(
        &mut self,
        chunk: Span<'_, '_>,
        settled: &GroupPlans,
        out: &mut [u8],
        loss: &mut Loss,
    ) -> Result<(), Error> {
        let values = gather(&mut self.shared, chunk, &mut self.values)?;
        let mut done = Ok(());
        for (plan, run) in settled.runs(chunk.first, chunk.len) {
            let from = run.start - chunk.first..run.end - chunk.first;
            let lent = Output {
                codes: signed_mut(&mut out[from.clone()]),
                scales: &mut [0.0],
                zero_points: &mut [],
            };
            let engine = &mut *self.shared.engine;
            let coded = (|| -> Result<(), <E as QuantizeEngine>::Error> {
                let groups = Groups::tensor(from.len())?;
                let mut tensor = engine.tensor(&values[from], groups, lent)?;
                tensor.apply(0, plan)?;
                tensor.finish()
            })();
            if let Err(error) = coded {
                done = Err(error.into());
                break;
            }
        }
        if self
            .shared
            .settle(done, |fault| refused(chunk, fault))?
            .is_none()
        {
            return TiledSteps.apply(chunk, settled, out, loss);
        }
        let codes: &[u8] = out;
        loss.chunk(chunk, |at, _, restored| {
            let codes = &codes[at - chunk.first..][..restored.len()];
            settled.restore(at, codes, restored)
        })
    }

    fn palette(
        &mut self,
        matrix: &WeightedTensor<'_, '_>,
        layout: &palette::IndexMatrix,
        out: palette::Output<'_>,
    ) -> Result<Encoded, Error> {
        let chunk = Span {
            source: matrix.source,
            first: matrix.first,
            len: layout.values(),
        };
        let values = gather(&mut self.shared, chunk, &mut self.values)?;
        let mut buffer = Vec::new();
        let importances = matrix
            .importances(0, chunk.len, &mut buffer)
            .map_err(|refusal| matrix.refuse(refusal))?;
        let lent = palette::Output {
            indices: out.indices,
            codebooks: out.codebooks,
            scales: out.scales,
        };
        let engine = &mut *self.shared.engine;
        let mut scratch = vec![0; engine.palette_scratch_len(layout)];
        let done = engine.encode_palette(layout, values, importances, lent, &mut scratch);
        let refused = |fault| match fault {
            EngineError::Refused(Refused::Palette(error)) => matrix.refuse(Refusal::Palette(error)),
            other => refused(chunk, other),
        };
        match self.shared.settle(done.map_err(Into::into), refused)? {
            Some(done) => Ok(done),
            None => TiledSteps.palette(matrix, layout, out),
        }
    }

    fn name(&self) -> String {
        self.shared.engine.name()
    }

    fn worked(&mut self) -> String {
        self.shared.worked()
    }

    fn note(&self) -> Option<String> {
        self.shared.note()
    }
}
