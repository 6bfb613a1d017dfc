//! Palettes with their codebooks and scales beside them.
//!
//! A group that is encoded as a whole is read once. For a longer one, all threads first read the values for the grid
//! and for the counts from which the codebook is chosen, and then for the indices.

use tercet_core::block::Format;
use tercet_core::palette::{Coder, IndexMatrix, Output};
use tercet_core::quant::{Grid, Rule, ScaleRule};

use super::codec::Codec;
use super::encode::encode;
use super::importance::Importance;
use super::measure::Loss;
use super::report::Beside;
use super::span::{Done, Span};
use super::steps::{ConversionSteps, PALETTE_TILE};
use super::stream::{Encoder, Parts, Sink, stream};
use super::weighted::WeightedTensor;
use crate::palette::Stored;
use crate::parallel::palette::Group;
use crate::simd::Backend;
use crate::source::{CHUNK, Source};
use crate::{Error, Progress, TensorFile};

/// The formats that each tensor is compared with.
const BESIDE: [Format; 2] = [Format::Q4_0, Format::Q8_0];

/// How often [`beside`] additionally reads a tensor.
pub(crate) const PASSES: u64 = BESIDE.len() as u64;

/// Encodes a tensor of plain floats, with the importances in `importance` under its name. The parts are indices,
/// codebooks and scales.
pub(super) fn quantize(
    steps: &mut dyn ConversionSteps,
    source: &Source<'_>,
    layout: IndexMatrix,
    importance: Option<&TensorFile>,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<Done, Error> {
    let importance = importance.map(|model| Importance::of(model, source.tensor.name));
    let mut palettes = Palettes {
        steps,
        source,
        importance: importance.transpose()?,
        layout,
        codebooks: Vec::new(),
        scales: Vec::new(),
        chosen: None,
        flushed: 0,
        loss: Loss::default(),
    };
    stream(source, &mut palettes, progress, sink)?;
    Ok(Done {
        flushed: palettes.flushed,
        measures: palettes.loss.finish(),
    })
}

/// A tensor in conversion.
struct Palettes<'a, 's> {
    steps: &'a mut dyn ConversionSteps,
    source: &'a Source<'s>,
    importance: Option<Importance<'a>>,
    layout: IndexMatrix,
    /// Codebooks of the chunk's groups.
    codebooks: Vec<i8>,
    /// Scales of the chunk's groups.
    scales: Vec<f32>,
    /// Of the group that a chunk is part of.
    chosen: Option<(Coder, Grid)>,
    flushed: u64,
    loss: Loss,
}

impl Encoder for Palettes<'_, '_> {
    fn end(&self) -> usize {
        self.layout.values()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let chunk = self.layout_of_chunk(first);
        let indices = out.room(0, chunk.index_bytes());
        if self.layout.group_len() <= self.steps.whole_palette() {
            self.groups(first, &chunk, indices)?;
        } else {
            self.part(first, &chunk, indices)?;
        }
        let codebooks: Vec<u8> = self.codebooks.iter().map(|&entry| entry as u8).collect();
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes());
        let scales: Vec<u8> = scales.collect();
        let stored = Stored {
            layout: chunk,
            indices,
            codebooks: &codebooks,
            scales: &scales,
        };
        let chunk = Span {
            source: self.source,
            first,
            len: chunk.values(),
        };
        self.loss.chunk(chunk, |at, _, out| {
            let read = stored.read(at - first, out);
            read.map_err(|group| format!("the scale of group {group} is not finite"))
        })?;
        // A group's codebook is written with the first of its indices.
        if first.is_multiple_of(self.layout.group_len()) {
            out.extend(1, codebooks);
            out.extend(2, scales);
        }
        Ok(chunk.end())
    }
}

impl Palettes<'_, '_> {
    /// Returns the layout of the chunk that begins at value `first`, as a separate matrix: whole groups, at least one;
    /// or whole rows of a group; or a part of a row, whose length is a multiple of eight if more of the row follows.
    fn layout_of_chunk(&self, first: usize) -> IndexMatrix {
        let (all, width) = (self.layout, self.layout.width());
        let (cols, group_rows) = (all.cols(), all.group_rows());
        let (row, col) = (first / cols, first % cols);
        // The last group may be shorter. Its rows alone do not show where groups begin, so it is a separate chunk.
        let left = all.rows() - row;
        let made = if all.group_len() <= self.steps.whole_palette() {
            match left / group_rows {
                0 => IndexMatrix::new(width, left, cols, 1),
                groups => {
                    let groups = (CHUNK / all.group_len()).clamp(1, groups);
                    IndexMatrix::new(width, groups * group_rows, cols, groups)
                }
            }
        } else if cols <= CHUNK {
            let rows = (group_rows - row % group_rows).min(left);
            IndexMatrix::new(width, rows.min(CHUNK / cols), cols, 1)
        } else {
            IndexMatrix::new(width, 1, CHUNK.min(cols - col), 1)
        };
        made.expect("a part of a layout is one")
    }

    /// Encodes the whole groups of a chunk.
    fn groups(
        &mut self,
        first: usize,
        chunk: &IndexMatrix,
        indices: &mut [u8],
    ) -> Result<(), Error> {
        let mut codebooks = vec![0; chunk.codebook_len()];
        let mut scales = vec![0.0; chunk.groups()];
        let out = Output {
            indices,
            codebooks: &mut codebooks,
            scales: &mut scales,
        };
        let matrix = WeightedTensor {
            source: self.source,
            importance: self.importance.as_ref(),
            first,
        };
        self.flushed += self.steps.palette(&matrix, chunk, out)?.flushed;
        (self.codebooks, self.scales) = (codebooks, scales);
        Ok(())
    }

    /// Encodes a part of a long group, whose codebook is chosen at its beginning.
    fn part(&mut self, first: usize, chunk: &IndexMatrix, indices: &mut [u8]) -> Result<(), Error> {
        let matrix = WeightedTensor {
            source: self.source,
            importance: self.importance.as_ref(),
            first: 0,
        };
        let len = self.layout.group_len();
        let group = |layout, first, len| Group {
            first,
            len,
            backend: Backend::default(),
            layout,
            matrix: &matrix,
        };
        let mut chosen = None;
        if first.is_multiple_of(len) {
            let mut codebook = vec![0; self.layout.width().entries()];
            let whole = group(&self.layout, first, len.min(self.layout.values() - first));
            let (grid, done) =
                (whole.large(&mut codebook, PALETTE_TILE)).map_err(|error| matrix.refuse(error))?;
            let coder = Coder::new(self.layout.width(), &codebook);
            let coder = coder.map_err(|error| matrix.refuse(error.into()))?;
            chosen = Some((coder, grid, codebook, done.flushed));
        }
        let (coder, grid) = match (&chosen, &self.chosen) {
            (Some((coder, grid, ..)), _) | (None, Some((coder, grid))) => (coder, grid),
            (None, None) => unreachable!("the first chunk begins a group"),
        };
        group(chunk, first, chunk.values())
            .pack(coder, grid, indices, PALETTE_TILE)
            .map_err(|error| matrix.refuse(error))?;
        if let Some((coder, grid, codebook, flushed)) = chosen {
            self.codebooks = codebook;
            self.scales = vec![grid.scale];
            self.chosen = Some((coder, grid));
            self.flushed += flushed;
        }
        Ok(())
    }
}

/// Returns the loss of the same tensor in GGUF blocks, for the formats that its rows divide into and its scales fit.
pub(super) fn beside(
    steps: &mut dyn ConversionSteps,
    source: &Source<'_>,
    progress: &dyn Progress,
) -> Vec<Beside> {
    let mut all = Vec::new();
    for format in BESIDE {
        let (len, bytes) = format.layout();
        if source.tensor.row().is_multiple_of(len) {
            let codec = Codec::Blocks {
                format,
                rule: Rule::default(),
                scale: ScaleRule::Rule,
            };
            let done = encode(steps, source, codec, &(), &mut |_, _| Ok(()));
            let measures = done.ok().and_then(|done| done.measures);
            all.extend(measures.map(|measures| Beside {
                format: format.name(),
                bits_per_weight: bytes as f64 * 8.0 / len as f64,
                relative_error: measures.relative_error,
            }));
        }
        progress.advance(source.bytes_of(source.values()));
    }
    all
}
