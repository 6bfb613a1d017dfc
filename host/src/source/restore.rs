//! ChunkBuffers of values: in place, restored by an engine, or read by the processor's threads.

use tercet_core::palette::{IndexMatrix, Palette, PaletteError};
use tercet_core::quant::{Codes, Groups, QuantError, int8};
use tracing::trace_span;

use super::{CHUNK, Kind, Source, TILE, signed};
use crate::Error;
use crate::engine::{EngineError, FlowEngine, WithFallback};
use crate::floats;
use crate::palette::Stored;
use crate::parallel::each::{both, chunks_mut};
use crate::tensor_file::Tensor;

/// The result for values that an engine might restore.
pub(crate) enum Restored {
    /// The engine restored them.
    Done,
    /// The processor must read them: the engine has no step for them, or no room.
    Not,
    /// The engine refuses them. The processor, which reads them tile by tile, reports the first fault; this error is
    /// returned if it finds none.
    Refused(Error),
}

/// Restores values on an engine, whole chunks at a time. If the engine is the pool itself, it does not: the tiles of
/// [`Source::read`] stay in a thread's cache.
pub(crate) fn restore<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    source: &Source<'_>,
    start: usize,
    out: &mut [f32],
) -> Result<Restored, Error> {
    if !on_engine(shared.engine, source) {
        if source.is_quantized() {
            shared.by_processor();
        }
        return Ok(Restored::Not);
    }
    let (tensor, len) = (source.tensor.name, out.len());
    let _span = trace_span!("restore", tensor, first = start, len).entered();
    source.page_in(start, len);
    let done = source.restore(shared.engine, start, out);
    let refused = |fault| Error::tensor(source.path, source.tensor.name, fault);
    match done {
        Ok(()) | Err(EngineError::NoRoom(_) | EngineError::Failed(_)) => {
            Ok(match shared.settle(done, refused)? {
                Some(()) => Restored::Done,
                None => Restored::Not,
            })
        }
        Err(fault) => Ok(Restored::Refused(refused(fault))),
    }
}

/// True if an engine restores a tensor by itself.
pub(crate) fn on_engine<E: FlowEngine>(engine: &E, source: &Source<'_>) -> bool {
    let has_step = matches!(
        source.kind,
        Kind::Blocks(_) | Kind::Codes { .. } | Kind::Palette { .. }
    );
    !engine.is_pool() && has_step
}

/// Returns the `len` values from `start` on: in place if they are stored as `f32`, otherwise in `buffer`, restored by
/// the engine or read by all threads. Damage is reported as by [`Source::read`], the lowest place first.
pub(crate) fn gather<'b, E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    source: &'b Source<'_>,
    start: usize,
    len: usize,
    buffer: &'b mut Vec<f32>,
) -> Result<&'b [f32], Error> {
    if let Some(values) = source.lying(start, len) {
        return Ok(values);
    }
    buffer.resize(len, 0.0);
    match restore(shared, source, start, buffer)? {
        Restored::Done => {}
        Restored::Not => source.read_tiles(start, buffer)?,
        Restored::Refused(error) => {
            source.read_tiles(start, buffer)?;
            return Err(error);
        }
    }
    Ok(buffer)
}

/// Room for a chunk of each of `N` tensors, if they are not in memory as `f32`, and for the next chunks.
pub(crate) type ChunkBuffers<const N: usize> = [[Vec<f32>; N]; 2];

/// Calls `work` with the values of `N` tensors of equal length, chunk by chunk, with the place of the first value.
/// Meanwhile an engine that is not the pool restores the next chunk.
pub(crate) fn chunks<E: FlowEngine, const N: usize>(
    shared: &mut WithFallback<'_, E>,
    sources: [&Source<'_>; N],
    [now, next]: &mut ChunkBuffers<N>,
    mut work: impl FnMut(usize, [&[f32]; N]) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let all = sources[0].values();
    let len = |first: usize| CHUNK.min(all - first);
    let gather = |shared: &mut WithFallback<'_, E>, first: usize, room: &mut [Vec<f32>; N]| {
        let mut each = sources.iter().zip(room);
        each.try_for_each(|(source, room)| {
            gather(shared, source, first, len(first), room).map(|_| ())
        })
    };
    let ahead = sources
        .iter()
        .any(|source| on_engine(shared.engine, source));
    if all > 0 {
        gather(shared, 0, now)?;
    }
    for first in (0..all).step_by(CHUNK) {
        let values = std::array::from_fn(|which| {
            let lying = sources[which].mapped(first, len(first));
            lying.unwrap_or(&now[which])
        });
        let after = first + CHUNK;
        if ahead && after < all {
            let (done, gathered) = both(|| work(first, values), || gather(shared, after, next));
            done?;
            gathered?;
            std::mem::swap(now, next);
        } else {
            work(first, values)?;
            if after < all {
                gather(shared, after, now)?;
            }
        }
    }
    Ok(())
}

impl Source<'_> {
    /// Does [`Source::read`] on all threads, a tile each.
    pub(crate) fn read_tiles(&self, start: usize, out: &mut [f32]) -> Result<(), Error> {
        chunks_mut(out, TILE).try_each(|tile, out| {
            let first = start + tile * TILE;
            let _span = trace_span!("read", first, len = out.len()).entered();
            self.read(first, out)
        })
    }

    /// Does [`Source::read`] of blocks, int8 codes and palettes on an engine.
    fn restore<E: FlowEngine>(
        &self,
        engine: &mut E,
        start: usize,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        match self.kind {
            Kind::Blocks(format) => {
                let (len, size) = format.layout();
                let bytes = &self.tensor.bytes[start / len * size..][..out.len() / len * size];
                engine.decode_blocks(format, bytes, out).map_err(Into::into)
            }
            Kind::Codes {
                scales,
                zero_points,
                group,
            } => {
                let coded = Coded {
                    codes: signed(self.tensor.bytes),
                    scales,
                    zero_points: zero_points.map(|points| signed(points.bytes)),
                    group,
                };
                coded.restore(engine, start, out)
            }
            Kind::Palette { stored, .. } => look_up(&stored, engine, start, out),
            Kind::Plain | Kind::Packed { .. } | Kind::I2s(_) | Kind::Opaque => {
                unreachable!("`on_engine` says so")
            }
        }
    }
}

/// int8 codes as stored in a file.
struct Coded<'a> {
    codes: &'a [i8],
    scales: Tensor<'a>,
    zero_points: Option<&'a [i8]>,
    /// Values per group.
    group: usize,
}

impl Coded<'_> {
    /// Restores whole groups in one call; a part of a group before or after them is a separate group.
    fn restore<E: FlowEngine>(
        &self,
        engine: &mut E,
        start: usize,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        let (mut at, mut rest) = (start, out);
        while !rest.is_empty() {
            let (group, within) = (at / self.group, at % self.group);
            let groups = match within {
                0 if rest.len() >= self.group => Groups {
                    count: rest.len() / self.group,
                    len: self.group,
                },
                _ => Groups {
                    count: 1,
                    len: rest.len().min(self.group - within),
                },
            };
            let (part, after) = rest.split_at_mut(groups.count * groups.len);
            let scales = scales(&self.scales, group, groups.count);
            if !scales.iter().all(|scale| scale.is_finite()) {
                let index = at as u64;
                return Err(QuantError::NotFinite { index }.into());
            }
            let points = self.zero_points.map(|points| &points[group..]);
            let codes = Codes {
                groups,
                codes: &self.codes[at..][..part.len()],
                scales: &scales,
                zero_points: points.map_or(&[], |points| &points[..groups.count]),
            };
            let done = engine.dequantize(codes, int8::RANGE, part);
            done.map_err(Into::into)?;
            at += part.len();
            rest = after;
        }
        Ok(())
    }
}

/// Returns the scales of `count` groups from `first` on.
fn scales(of: &Tensor<'_>, first: usize, count: usize) -> Vec<f32> {
    let size = of.dtype.block().1;
    let mut scales = vec![0.0; count];
    floats::widen(
        of.dtype,
        &of.bytes[first * size..][..count * size],
        &mut scales,
    );
    scales
}

/// Restores whole groups of rows in one call, the whole rows of a part of a group in another, and parts of rows each as
/// a separate row. Such a row begins at a byte of indices: the up to 7 values before it are looked up here.
fn look_up<E: FlowEngine>(
    stored: &Stored<'_>,
    engine: &mut E,
    start: usize,
    out: &mut [f32],
) -> Result<(), EngineError> {
    let (layout, width) = (stored.layout, stored.layout.width());
    let (cols, group_rows) = (layout.cols(), layout.group_rows());
    let (mut at, mut rest) = (start, out);
    while !rest.is_empty() {
        let (row, col) = (at / cols, at % cols);
        let (group, within) = (row / group_rows, row % group_rows);
        let aligned = col.is_multiple_of(8);
        let (rows, len, groups) = match (col, rest.len() / cols) {
            (0, rows) if rows >= group_rows && within == 0 => {
                let groups = rows / group_rows;
                (groups * group_rows, cols, groups)
            }
            (0, rows) if rows > 0 => (rows.min(group_rows - within), cols, 1),
            _ => {
                let end = if aligned {
                    cols
                } else {
                    cols.min(col.next_multiple_of(8))
                };
                (1, rest.len().min(end - col), 1)
            }
        };
        let (part, after) = rest.split_at_mut(rows * len);
        at += part.len();
        rest = after;
        if !aligned {
            let read = stored.read(at - part.len(), part);
            read.map_err(|group| PaletteError::ScaleNotFinite { group })?;
            continue;
        }
        let layout = IndexMatrix::new(width, rows, len, groups)?;
        let scales = stored.scales.as_chunks().0[group..][..groups].iter();
        let scales: Vec<_> = scales.map(|&scale| f32::from_le_bytes(scale)).collect();
        let first = row * stored.layout.row_bytes() + width.bytes(col);
        let palette = Palette {
            layout,
            indices: &stored.indices[first..][..layout.index_bytes()],
            codebooks: &signed(stored.codebooks)[group * width.entries()..]
                [..layout.codebook_len()],
            scales: &scales,
        };
        engine.decode_palette(&palette, part).map_err(Into::into)?;
    }
    Ok(())
}
