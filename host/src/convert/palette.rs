//! Palettes with their codebooks and scales beside them.

use tercet_core::block::Format;
use tercet_core::palette::{Layout, Output, PaletteError};
use tercet_core::quant::{Measures, Rule, ScaleRule};

use super::importance::Importance;
use super::report::Beside;
use super::stream::{Codec, stream};
use crate::palette::Stored;
use crate::parallel::palette::{Matrix, encode};
use crate::simd::Backend;
use crate::source::Source;
use crate::{Error, Model, Progress};

/// Values of a group that one thread takes whole; of a larger one, values a task.
const TILE: usize = 1 << 16;

/// What each tensor is set beside.
const BESIDE: [Format; 2] = [Format::Q4_0, Format::Q8_0];

/// How often a tensor is read besides, for [`beside`].
pub(crate) const PASSES: u64 = BESIDE.len() as u64;

/// A tensor in palettes.
#[derive(Debug)]
pub(crate) struct Palettes {
    pub(crate) indices: Vec<u8>,
    pub(crate) codebooks: Vec<i8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) flushed: u64,
    pub(crate) measures: Option<Measures>,
}

/// Encodes a tensor of plain floats, with the importances that `importance` holds under its name.
pub(crate) fn quantize(
    source: &Source<'_>,
    layout: Layout,
    importance: Option<&Model>,
    progress: &dyn Progress,
) -> Result<Palettes, Error> {
    let importance = importance.map(|model| Importance::of(model, source.tensor.name));
    let matrix = Weighed {
        source,
        importance: importance.transpose()?,
    };
    let mut done = Palettes {
        indices: vec![0; layout.index_bytes()],
        codebooks: vec![0; layout.codebook_len()],
        scales: vec![0.0; layout.groups()],
        flushed: 0,
        measures: None,
    };
    let out = Output {
        indices: &mut done.indices,
        codebooks: &mut done.codebooks,
        scales: &mut done.scales,
    };
    let encoded =
        encode(Backend::default(), &layout, &matrix, out, TILE).map_err(|error| match error {
            Refusal::Palette(error) => Error::tensor(source.path, source.tensor.name, error),
            Refusal::Host(error) => error,
        })?;
    progress.advance(source.bytes_of(source.values()));
    done.flushed = encoded.flushed;
    done.measures = measure(source, layout, &done)?;
    Ok(done)
}

/// Measures against the values as the file is read back.
fn measure(
    source: &Source<'_>,
    layout: Layout,
    done: &Palettes,
) -> Result<Option<Measures>, Error> {
    let codebooks: Vec<u8> = done.codebooks.iter().map(|&entry| entry as u8).collect();
    let scales: Vec<u8> = done.scales.iter().flat_map(|s| s.to_le_bytes()).collect();
    let stored = Stored {
        layout,
        indices: &done.indices,
        codebooks: &codebooks,
        scales: &scales,
    };
    super::measure::measure(source, |first, out| {
        stored
            .read(first, out)
            .expect("scales of finite values are finite");
    })
}

/// What the same tensor loses in GGUF's blocks, where its rows divide into them and its scales fit.
pub(crate) fn beside(source: &Source<'_>, progress: &dyn Progress) -> Vec<Beside> {
    let mut all = Vec::new();
    for format in BESIDE {
        let (len, bytes) = format.layout();
        if source.tensor.row().is_multiple_of(len) {
            let codec = Codec::Blocks {
                format,
                rule: Rule::default(),
                scale: ScaleRule::Rule,
            };
            let streamed = stream(source, codec, &(), &mut |_| Ok(()));
            let measures = streamed.ok().and_then(|streamed| streamed.measures);
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

/// A tensor with its importances, read by any thread.
struct Weighed<'a, 's> {
    source: &'a Source<'s>,
    importance: Option<Importance<'a>>,
}

/// What stops the work on a tensor.
enum Refusal {
    Palette(PaletteError),
    Host(Error),
}

impl From<PaletteError> for Refusal {
    fn from(error: PaletteError) -> Self {
        Self::Palette(error)
    }
}

impl Matrix for Weighed<'_, '_> {
    type Value = f32;
    type Error = Refusal;

    fn values<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Refusal> {
        buffer.resize(len, 0.0);
        self.source.read(first, buffer).map_err(Refusal::Host)?;
        Ok(buffer)
    }

    fn importances<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], Refusal> {
        let Some(importance) = &self.importance else {
            return Ok(&[]);
        };
        buffer.resize(len, 0);
        importance.read(first, buffer).map_err(Refusal::Host)?;
        Ok(buffer)
    }
}
