//! Copies a tensor without some of its rows, columns or weights.

use half::f16;
use tercet_core::block::Format;
use tercet_core::model::{Architecture, Config};

use super::PruneOptions;
use super::choose::{Kept, spread};
use crate::convert::importance::of_inputs;
use crate::dtype::DType;
use crate::file::OutputTensor;
use crate::language::ternary;
use crate::parallel::each::numbers;
use crate::source::{CHUNK, Source, tiles};
use crate::tensor_file::Tensor;
use crate::{Error, Progress, Result, TensorFile, floats};

/// The copy of a tensor.
pub(super) struct Cut<'a> {
    source: Source<'a>,
    /// Its layer, if it is one of the layers' matrices.
    layer: Option<usize>,
    /// Rows that stay; `None` for all.
    rows: Option<Vec<usize>>,
    /// Columns that stay; `None` for all.
    cols: Option<Vec<usize>>,
    /// True if the other rows and columns become zeros instead.
    keeps_shape: bool,
    /// Factor of its values.
    gain: f64,
    sparse: Option<Sparse>,
    cells: Cells,
}

/// The share of each row that becomes zero.
struct Sparse {
    share: f64,
    /// Mean square of each kept column's input; `None` if all count the same.
    means: Option<Vec<f64>>,
}

/// How values lie in a row.
#[derive(Clone, Copy)]
enum Cells {
    /// A row is copied whole.
    Whole,
    /// Floats of so many bytes.
    Floats(usize),
    /// Ternary blocks with one scale.
    Ternary(Format, f16),
}

/// Returns layer, name within it and end of a tensor's name.
fn place(name: &str) -> Option<(usize, &str, &str)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let (part, end) = rest.split_once('.')?;
    Some((layer.parse().ok()?, part, end))
}

impl<'a> Cut<'a> {
    /// Decides about a tensor.
    pub(super) fn new(
        model: &'a TensorFile,
        tensor: Tensor<'a>,
        importance: Option<&TensorFile>,
        options: &PruneOptions,
        config: &Config,
        kept: &[Kept],
    ) -> Result<Self> {
        let source = Source::new(model, tensor)?;
        let mut cut = Self {
            source,
            layer: None,
            rows: None,
            cols: None,
            keeps_shape: config.architecture == Architecture::BitNet
                && place(tensor.name).is_some_and(|(_, part, _)| part.starts_with("attn_")),
            gain: 1.0,
            sparse: None,
            cells: Cells::Whole,
        };
        let Some((layer, part, end)) = place(tensor.name) else {
            return Ok(cut);
        };
        let Some(own) = kept.get(layer) else {
            return Ok(cut);
        };
        let queries = || {
            let count = config.query_width() / config.kv_heads;
            options.heads.map(|_| spread(&own.heads, count))
        };
        let keys = || options.heads.map(|_| spread(&own.heads, config.head));
        let channels = || options.feed_forward.map(|_| own.channels.clone());
        (cut.rows, cut.cols) = match (part, end) {
            ("attn_q", "weight") => (queries(), None),
            ("attn_k" | "attn_v", "weight") => (keys(), None),
            ("attn_output", "weight") => (None, queries()),
            ("ffn_gate" | "ffn_up", "weight") => (channels(), None),
            ("ffn_down", "weight") => (None, channels()),
            ("attn_sub_norm", "weight") => {
                cut.gain = own.heads_gain;
                (None, queries())
            }
            ("ffn_sub_norm", "weight") => {
                cut.gain = own.channels_gain;
                (None, channels())
            }
            ("attn_q", "bias") => (None, queries()),
            ("attn_k" | "attn_v", "bias") => (None, keys()),
            ("ffn_gate" | "ffn_up", "bias") => (None, channels()),
            _ => (None, None),
        };
        if tensor.shape.len() == 2 {
            cut.layer = Some(layer);
            if let Some(share) = options.sparsity {
                let means = importance.map(|importance| of_inputs(importance, &source));
                let means = means.transpose()?.map(|means| match &cut.cols {
                    Some(cols) if !cut.keeps_shape => cols.iter().map(|&col| means[col]).collect(),
                    _ => means,
                });
                cut.sparse = Some(Sparse { share, means });
            }
        }
        cut.cells = cut.cells()?;
        Ok(cut)
    }

    /// Returns how its values lie, or why they cannot be taken apart.
    fn cells(&self) -> Result<Cells> {
        let tensor = &self.source.tensor;
        let refuse = |reason: String| Err(Error::tensor(self.source.path, tensor.name, reason));
        let zeros = self.keeps_shape && self.rows.is_some();
        if self.cols.is_none() && self.sparse.is_none() && !zeros {
            return Ok(Cells::Whole);
        }
        let format = match tensor.dtype {
            dtype if dtype.is_float() => return Ok(Cells::Floats(dtype.block().1)),
            DType::Block(format) if format.is_ternary() => format,
            dtype => {
                return refuse(format!(
                    "it is {}; columns and single weights are pruned in floats and in ternary blocks, so prune the \
                     model before it is quantized",
                    dtype.name()
                ));
            }
        };
        let cols = self.width();
        if !cols.is_multiple_of(format.len()) {
            return refuse(format!(
                "{cols} channels do not divide into {} blocks of {}",
                format.name(),
                format.len()
            ));
        }
        if self
            .sparse
            .as_ref()
            .is_some_and(|sparse| sparse.means.is_none())
        {
            return refuse(
                "all its weights have one magnitude; give an importance file, by which they differ"
                    .into(),
            );
        }
        let values = self.source.values();
        let largest = |values: &[f32]| values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        let scale = tiles(&self.source, 0, values, largest, f32::max)?.unwrap_or(0.0);
        let only = |values: &[f32]| values.iter().all(|x| *x == 0.0 || x.abs() == scale);
        if !tiles(&self.source, 0, values, only, |a, b| a && b)?.unwrap_or(true) {
            return refuse(
                "its blocks have different scales; columns and single weights are pruned in ternary matrices with one"
                    .into(),
            );
        }
        // Every scale is stored as f16.
        Ok(Cells::Ternary(format, f16::from_f32(scale)))
    }

    /// Returns its name.
    pub(super) fn name(&self) -> &str {
        self.source.tensor.name
    }

    /// Returns its layer, if it is one of the layers' matrices.
    pub(super) const fn layer(&self) -> Option<usize> {
        self.layer
    }

    /// Returns the rows or columns that stay, if the others leave the tensor.
    fn shaping<'k>(&self, kept: &'k Option<Vec<usize>>) -> Option<&'k [usize]> {
        kept.as_deref().filter(|_| !self.keeps_shape)
    }

    /// Returns the number of columns that stay.
    fn width(&self) -> usize {
        let all = self.source.tensor.row();
        self.shaping(&self.cols).map_or(all, <[usize]>::len)
    }

    /// Returns the number of rows that stay.
    fn height(&self) -> usize {
        let all = self.source.values() / self.source.tensor.row().max(1);
        self.shaping(&self.rows).map_or(all, <[usize]>::len)
    }

    /// Returns the number of values that stay.
    pub(super) fn values(&self) -> u64 {
        self.width() as u64 * self.height() as u64
    }

    /// Returns the tensor to write.
    pub(super) fn part(&self) -> OutputTensor {
        let tensor = &self.source.tensor;
        let mut shape = tensor.shape.to_vec();
        if let (Some(rows), Some(outer)) = (self.shaping(&self.rows), shape.first_mut()) {
            *outer = rows.len();
        }
        if let (Some(cols), Some(inner)) = (self.shaping(&self.cols), shape.last_mut()) {
            *inner = cols.len();
        }
        let bytes = match self.cells {
            Cells::Whole if self.rows.is_none() => tensor.bytes.len() as u64,
            _ => {
                let (len, size) = tensor.dtype.block();
                self.values() / len as u64 * size as u64
            }
        };
        OutputTensor {
            name: tensor.name.to_owned(),
            shape,
            dtype: tensor.dtype,
            bytes,
        }
    }

    /// Writes it, and returns how many weights became zero.
    pub(super) fn write(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
        progress: &dyn Progress,
    ) -> Result<u64> {
        let all = self.source.tensor.bytes;
        if matches!(self.cells, Cells::Whole) && self.rows.is_none() {
            for part in all.chunks(4 * CHUNK) {
                sink(part)?;
                progress.advance(part.len() as u64);
            }
            return Ok(0);
        }
        let (rows, mut zeroed) = (self.height(), 0);
        let each = (CHUNK / self.source.tensor.row().max(1)).max(1);
        let mut told = 0;
        for first in (0..rows).step_by(each) {
            let end = rows.min(first + each);
            let done = numbers(first..end).gather_with(Vec::new, |buffer, _, row| {
                let row = self.shaping(&self.rows).map_or(row, |rows| rows[row]);
                self.row(row, buffer)
            });
            for row in done {
                let (bytes, zeros) = row?;
                sink(&bytes)?;
                zeroed += zeros;
            }
            let reached = (all.len() as u128 * end as u128 / rows as u128) as u64;
            progress.advance(reached - told);
            told = reached;
        }
        self.source.release();
        Ok(zeroed)
    }

    /// Returns the bytes of a row of the input without what is pruned, and how many weights became zero.
    fn row(&self, row: usize, buffer: &mut Vec<f32>) -> Result<(Vec<u8>, u64)> {
        let source = &self.source;
        let cols = source.tensor.row();
        let (len, size) = source.tensor.dtype.block();
        let length = cols / len * size;
        let bytes = &source.tensor.bytes[row * length..][..length];
        if matches!(self.cells, Cells::Whole) {
            return Ok((bytes.to_vec(), 0));
        }
        buffer.resize(cols, 0.0);
        source.read(row * cols, buffer)?;
        if let Some(bad) = buffer.iter().position(|x| !x.is_finite()) {
            let index = row * cols + bad;
            return Err(Error::not_finite(source.path, source.tensor.name, index));
        }
        let mut values: Vec<f32> = match self.shaping(&self.cols) {
            Some(cols) => cols.iter().map(|&col| buffer[col]).collect(),
            None => buffer.clone(),
        };
        let nonzero = |values: &[f32]| values.iter().filter(|x| **x != 0.0).count() as u64;
        let before = nonzero(&values);
        if self.keeps_shape {
            self.clear(row, &mut values);
        }
        if let Some(sparse) = &self.sparse {
            sparse.apply(&mut values);
        }
        let zeroed = before - nonzero(&values);
        if self.gain != 1.0 {
            for x in &mut values {
                *x = (f64::from(*x) * self.gain) as f32;
            }
        }
        let refuse = |reason: String| Error::tensor(source.path, source.tensor.name, reason);
        let bytes = match self.cells {
            Cells::Ternary(format, scale) => {
                let sign = |x: &f32| i8::from(*x > 0.0) - i8::from(*x < 0.0);
                let codes: Vec<i8> = values.iter().map(sign).collect();
                ternary(format, &codes, scale).map_err(|error| refuse(error.to_string()))?
            }
            Cells::Floats(size) => {
                let mut bytes = vec![0; values.len() * size];
                // Values that were of the type stay as they are.
                floats::narrow(source.tensor.dtype, &values, &mut bytes)
                    .map_err(|at| refuse(format!("value {at} is too large")))?;
                bytes
            }
            Cells::Whole => bytes.to_vec(),
        };
        Ok((bytes, zeroed))
    }

    /// Sets the values of a row that do not stay to zero.
    fn clear(&self, row: usize, values: &mut [f32]) {
        // Both lists are in order.
        let stays = |kept: &Option<Vec<usize>>, index: usize| {
            (kept.as_ref()).is_none_or(|kept| kept.binary_search(&index).is_ok())
        };
        let whole = stays(&self.rows, row);
        for (col, value) in values.iter_mut().enumerate() {
            if !whole || !stays(&self.cols, col) {
                *value = 0.0;
            }
        }
    }
}

impl Sparse {
    /// Sets the least important values of a row to zero. Of equal ones the first are taken.
    fn apply(&self, row: &mut [f32]) {
        let count = (row.len() as f64 * self.share) as usize;
        let Some(last) = count.checked_sub(1) else {
            return;
        };
        let mean = |col: usize| self.means.as_ref().map_or(1.0, |means| means[col]);
        let scored = row.iter().enumerate().map(|(col, &x)| {
            let square = f64::from(x) * f64::from(x);
            (square * mean(col), col)
        });
        let mut order: Vec<(f64, usize)> = scored.collect();
        let by = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        order.select_nth_unstable_by(last, by);
        for &(_, col) in &order[..count] {
            row[col] = 0.0;
        }
    }
}
