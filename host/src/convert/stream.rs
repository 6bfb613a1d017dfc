//! The one loop that carries a tensor of any size through bounded memory.
//!
//! While one chunk is written, every thread encodes and measures runs of the next. The measures sum in the number
//! rules' order, so neither threads nor chunks show.

use rayon::prelude::*;
use tercet_core::block::{BlockError, Format};
use tercet_core::number::RUN;
use tercet_core::quant::{Comparison, Measures, Rule, ScaleRule};

use super::options::{QuantizeOptions, Target};
use crate::dtype::DType;
use crate::parallel::moved;
use crate::simd::{Backend, Stores};
use crate::source::{CHUNK, Source, TILE, place_block};
use crate::{Error, Progress, floats};

/// Turns values into bytes and back. [`TILE`] is a multiple of every codec's block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Codec {
    Floats(DType),
    Blocks {
        format: Format,
        rule: Rule,
        scale: ScaleRule,
    },
}

impl Codec {
    /// Blocks of a format; formats with one rule of their own take no other.
    pub(crate) fn blocks(format: Format, options: &QuantizeOptions) -> Self {
        let ternary = format.is_ternary();
        let own = match options.target {
            Target::Auto if ternary => Rule::Optimal,
            _ => Rule::default(),
        };
        Self::Blocks {
            format,
            rule: options.rule.filter(|_| ternary).unwrap_or(own),
            scale: if ternary {
                options.scale
            } else {
                ScaleRule::Rule
            },
        }
    }

    /// The type of the encoded tensor.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::Floats(dtype) => dtype,
            Self::Blocks { format, .. } => DType::Block(format),
        }
    }

    fn bytes(self, values: usize) -> usize {
        match self {
            Self::Floats(dtype) => values * dtype.block().1,
            Self::Blocks { format, .. } => values / format.len() * format.bytes(),
        }
    }

    /// Encodes the values that begin at `first`; returns the number of flushed blocks.
    fn encode(self, first: usize, values: &[f32], out: &mut [u8]) -> Result<u64, String> {
        match self {
            Self::Floats(dtype) => {
                floats::narrow(dtype, values, out)
                    .map(|()| 0)
                    .map_err(|index| {
                        let (value, place) = (values[index], first + index);
                        match value.is_finite() {
                            true => {
                                format!("value {place} is {value}, too large for {}", dtype.name())
                            }
                            false => format!("value {place} is not finite"),
                        }
                    })
            }
            Self::Blocks {
                format,
                rule,
                scale,
            } => match Backend::default().encode_blocks(format, rule, scale, values, out) {
                Ok(done) => Ok(done.flushed as u64),
                Err(BlockError::NotFinite { index }) => {
                    Err(format!("value {} is not finite", first + index))
                }
                Err(error) => Err(place_block(error, first / format.len())),
            },
        }
    }

    fn restore(self, bytes: &[u8], out: &mut [f32]) -> Result<(), String> {
        match self {
            Self::Floats(dtype) => floats::widen(dtype, bytes, out),
            Self::Blocks { format, .. } => {
                Backend::default()
                    .decode_blocks(format, bytes, out, Stores::Cached)
                    .map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

/// A chunk under way.
#[derive(Debug, Default)]
struct Stage {
    bytes: Vec<u8>,
    flushed: u64,
    /// One comparison a run; none where nothing is measured.
    runs: Vec<Comparison>,
}

/// What a thread works in: a tile stays in its cache from reading to measuring.
#[derive(Debug, Default)]
struct Scratch {
    values: Vec<f32>,
    restored: Vec<f32>,
}

impl Stage {
    /// Reads, encodes, restores and measures the `len` values from `first` on, run by run on all threads.
    fn fill(
        &mut self,
        source: &Source<'_>,
        codec: Codec,
        first: usize,
        len: usize,
    ) -> Result<(), Error> {
        self.bytes.resize(codec.bytes(len), 0);
        let runs = self.bytes.par_chunks_mut(codec.bytes(RUN)).enumerate();
        let results: Vec<Result<(u64, Option<Comparison>), Error>> = runs
            .map_init(Scratch::default, |scratch, (run, bytes)| {
                let at = run * RUN;
                scratch.run(source, codec, first + at, RUN.min(len - at), bytes)
            })
            .collect();
        // In order, so that the lowest index is the one reported.
        self.flushed = 0;
        self.runs.clear();
        for result in results {
            let (flushed, comparison) = result?;
            self.flushed += flushed;
            self.runs.extend(comparison);
        }
        Ok(())
    }
}

impl Scratch {
    /// Encodes and measures a run, or what is left of the last one.
    fn run(
        &mut self,
        source: &Source<'_>,
        codec: Codec,
        first: usize,
        len: usize,
        bytes: &mut [u8],
    ) -> Result<(u64, Option<Comparison>), Error> {
        let refuse = |reason| Error::tensor(source.path, source.tensor.name, reason);
        let mut comparison = measured(source).then(Comparison::new);
        let mut flushed = 0;
        for (tile, bytes) in bytes.chunks_mut(codec.bytes(TILE)).enumerate() {
            let at = tile * TILE;
            self.values.resize(TILE.min(len - at), 0.0);
            source.read(first + at, &mut self.values)?;
            flushed += codec
                .encode(first + at, &self.values, bytes)
                .map_err(refuse)?;
            if let Some(comparison) = &mut comparison {
                self.restored.resize(self.values.len(), 0.0);
                codec.restore(bytes, &mut self.restored).map_err(refuse)?;
                Backend::default()
                    .compare(comparison, &self.values, &self.restored)
                    .map_err(|error| refuse(moved(error, first as u64).to_string()))?;
            }
        }
        Ok((flushed, comparison))
    }
}

/// What was restored from codes is not the original that an error could be told from.
fn measured(source: &Source<'_>) -> bool {
    !source.is_quantized()
}

/// What streaming a tensor gave.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) flushed: u64,
    /// `None` for a source that is quantized itself.
    pub(crate) measures: Option<Measures>,
}

/// Encodes a tensor of at least one value and hands its bytes to `sink` in order.
pub(crate) fn stream(
    source: &Source<'_>,
    codec: Codec,
    progress: &dyn Progress,
    sink: &mut (dyn FnMut(&[u8]) -> Result<(), Error> + Send),
) -> Result<Streamed, Error> {
    let values = source.values();
    let mut comparison = Comparison::new();
    let mut flushed = 0;
    let (mut now, mut next) = (Stage::default(), Stage::default());
    now.fill(source, codec, 0, CHUNK.min(values))?;
    let mut first = 0;
    while first < values {
        let following = values.min(first + CHUNK);
        let (filled, drained) = rayon::join(
            || match CHUNK.min(values - following) {
                0 => Ok(()),
                len => next.fill(source, codec, following, len),
            },
            || sink(&now.bytes),
        );
        drained?;
        filled?;
        for run in &now.runs {
            comparison
                .append(run)
                .expect("a chunk is whole runs, but for the last");
        }
        flushed += now.flushed;
        progress.advance(source.bytes_of(following) - source.bytes_of(first));
        std::mem::swap(&mut now, &mut next);
        first = following;
    }
    Ok(Streamed {
        flushed,
        measures: comparison.finish(),
    })
}
