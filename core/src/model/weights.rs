//! A matrix of a model: blocks of low-bit weights, or floats.

use half::{bf16, f16};

use super::ModelError;
use crate::block;
use crate::linear::{Layer, Layout};
use crate::number::{Element, Lanes};

/// Type of a matrix's floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FloatType {
    /// 32-bit floats.
    F32,
    /// IEEE 16-bit floats.
    F16,
    /// 16-bit floats that are the upper half of an f32.
    Bf16,
}

impl FloatType {
    /// Returns the number of bytes per value.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// A matrix of floats as in a file: rows of `cols` values, little-endian, at any address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FloatMatrix<'a> {
    kind: FloatType,
    cols: usize,
    bytes: &'a [u8],
}

impl<'a> FloatMatrix<'a> {
    /// Accepts the bytes of a matrix; `None` unless they are whole rows of at least one value.
    pub fn new(kind: FloatType, cols: usize, bytes: &'a [u8]) -> Option<Self> {
        let row = cols.checked_mul(kind.bytes()).filter(|&row| row > 0)?;
        bytes
            .len()
            .is_multiple_of(row)
            .then_some(Self { kind, cols, bytes })
    }

    /// Returns the type of the values.
    pub const fn kind(&self) -> FloatType {
        self.kind
    }

    /// Returns the number of values per row, at least 1.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the bytes of all values.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of bytes per row, at least 1.
    fn row_bytes(&self) -> usize {
        // `new` has checked that this fits and is not 0; repeated here for the compiler.
        self.cols.saturating_mul(self.kind.bytes()).max(1)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }

    /// Returns the bytes of a row; none after the last.
    pub fn row(&self, row: usize) -> &'a [u8] {
        let bytes = self.row_bytes();
        let rest = row
            .checked_mul(bytes)
            .and_then(|first| self.bytes.get(first..));
        rest.and_then(|rest| rest.get(..bytes)).unwrap_or_default()
    }

    /// Returns at most `rows` rows, from `first` on.
    pub fn part(&self, first: usize, rows: usize) -> Self {
        let bytes = self.row_bytes();
        let rest = first
            .checked_mul(bytes)
            .and_then(|first| self.bytes.get(first..));
        let rest = rest.unwrap_or_default();
        let part = rows.checked_mul(bytes).and_then(|len| rest.get(..len));
        Self {
            bytes: part.unwrap_or(rest),
            ..*self
        }
    }

    /// Writes a row's values, converted to f32, to `out`; if the lengths differ, as many as fit.
    pub fn widen(&self, row: usize, out: &mut [f32]) {
        let bytes = self.row(row);
        match self.kind {
            FloatType::F32 => widen::<f32>(bytes, out),
            FloatType::F16 => widen::<f16>(bytes, out),
            FloatType::Bf16 => widen::<bf16>(bytes, out),
        }
    }

    /// Returns the dot product of a row, converted to f32, with activations, in the order of
    /// [`crate::number::lanes`]. `x` has one value per column.
    pub fn dot(&self, row: usize, x: &[f32]) -> f32 {
        let bytes = self.row(row);
        match self.kind {
            FloatType::F32 => dot::<f32, 4>(bytes, x),
            FloatType::F16 => dot::<f16, 2>(bytes, x),
            FloatType::Bf16 => dot::<bf16, 2>(bytes, x),
        }
    }
}

/// Returns the numbers of a slice of f32, little-endian, at any address.
pub(crate) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    let (values, _) = bytes.as_chunks();
    values.iter().map(|&bytes| f32::from_le_bytes(bytes))
}

fn widen<T: Element>(bytes: &[u8], out: &mut [f32]) {
    let mut values = bytes.chunks_exact(T::BYTES.max(1)).map(T::from_le_bytes);
    for out in out {
        let Some(value) = values.next().flatten() else {
            return;
        };
        *out = value.to_f32();
    }
}

/// Multiplies 64 values at a time; the lanes continue across them.
fn dot<T: Element, const BYTES: usize>(bytes: &[u8], x: &[f32]) -> f32 {
    let mut lanes = Lanes::<f32>::new();
    let mut values = [T::default(); 64];
    let mut bytes = bytes.chunks(64 * BYTES);
    for x in x.chunks(64) {
        let Some(bytes) = bytes.next() else { break };
        let mut bytes = bytes.chunks_exact(BYTES);
        for value in &mut values {
            *value = bytes.next().and_then(T::from_le_bytes).unwrap_or_default();
        }
        let values = values.get(..x.len()).unwrap_or_default();
        // The lengths are equal.
        let _ = lanes.dot(values, x);
    }
    lanes.total()
}

/// Values of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Values<'a> {
    /// No matrix.
    None,
    /// Low-bit weights.
    Blocks(Layer<'a>),
    /// Floats.
    Floats(FloatMatrix<'a>),
}

/// A matrix, with the bias and the scale of its products.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Weights<'a> {
    /// Rows are outputs, columns are inputs.
    pub values: Values<'a>,
    /// Bias, one f32 per row, little-endian; empty if there is none.
    pub bias: &'a [u8],
    /// Final factor of the product, if the file has such a tensor.
    pub scale: Option<f32>,
}

impl<'a> Weights<'a> {
    /// No matrix.
    pub const NONE: Self = Self {
        values: Values::None,
        bias: &[],
        scale: None,
    };

    /// Creates a matrix without bias and scale.
    pub const fn new(values: Values<'a>) -> Self {
        Self {
            values,
            ..Self::NONE
        }
    }

    /// Returns the number of rows (outputs); 0 without a matrix.
    pub fn rows(&self) -> usize {
        match &self.values {
            Values::None => 0,
            Values::Blocks(layer) => layer.weights().rows(),
            Values::Floats(matrix) => matrix.rows(),
        }
    }

    /// Returns the number of columns (inputs); 0 without a matrix.
    pub const fn cols(&self) -> usize {
        match &self.values {
            Values::None => 0,
            Values::Blocks(layer) => layer.weights().cols(),
            Values::Floats(matrix) => matrix.cols(),
        }
    }

    /// Returns the number of bytes of the weights.
    pub const fn bytes(&self) -> usize {
        match &self.values {
            Values::None => 0,
            Values::Blocks(layer) => layer.weights().bytes().len(),
            Values::Floats(matrix) => matrix.bytes.len(),
        }
    }

    /// Returns the low-bit weights, if the matrix has them.
    pub(super) const fn layer(&self) -> Option<&Layer<'a>> {
        match &self.values {
            Values::Blocks(layer) => Some(layer),
            Values::None | Values::Floats(_) => None,
        }
    }

    /// Returns true if the matrix takes activations as floats, not as codes.
    pub(super) const fn takes_floats(&self) -> bool {
        matches!(self.values, Values::Floats(_))
    }

    /// Writes a row's values to `out`, which has one element per column: a token's embedding. The layout is in a set.
    pub(crate) fn embed_of<const SET: u32>(
        &self,
        row: usize,
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        match &self.values {
            Values::None => out.fill(0.0),
            Values::Floats(matrix) => matrix.widen(row, out),
            Values::Blocks(layer) => {
                let matrix = layer.weights().part(row, 1).ok_or(ModelError::TooLarge)?;
                if let Layout::Block(format) = matrix.layout() {
                    block::decode_of::<SET>(format, matrix.bytes(), out)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the bias and multiplies by the scale, each rounded. `out` has rows of outputs.
    pub(super) fn finish(&self, out: &mut [f32]) {
        if !self.bias.is_empty() {
            for row in out.chunks_exact_mut((self.bias.len() / 4).max(1)) {
                for (out, bias) in row.iter_mut().zip(floats(self.bias)) {
                    *out += bias;
                }
            }
        }
        if let Some(scale) = self.scale {
            out.iter_mut().for_each(|out| *out *= scale);
        }
    }
}
