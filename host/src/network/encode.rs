//! Encodes a matrix of floats in a layout.

use tercet_core::block::Format;
use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::linear::{Layout, LinearError, Matrix, Table, pack};
use tercet_core::quant::{self, Groups, Method, Rule, ScaleRule};

use super::BuildOptions;
use crate::engine::{EngineError, FlowEngine, WithFallback};

/// Weights in the form of the file.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) layout: Layout,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) bytes: Vec<u8>,
    /// One, or one per row; empty for blocks.
    pub(super) scales: Vec<f32>,
}

impl Weights {
    /// Quantizes a row-major matrix on an engine. The calling thread packs the codes of layouts other than blocks.
    pub(super) fn encode<E: FlowEngine>(
        shared: &mut WithFallback<'_, E>,
        values: &[f32],
        (rows, cols): (usize, usize),
        layout: Layout,
        options: &BuildOptions,
    ) -> Result<Self, EngineError> {
        let mut weights = Self {
            layout,
            rows,
            cols,
            bytes: vec![0; layout.bytes(rows, cols)?],
            scales: Vec::new(),
        };
        match layout {
            Layout::Block(format) => {
                let bytes = &mut weights.bytes;
                let done = blocks(shared.engine, format, values, bytes, options);
                shared.or_threads(done, |threads| {
                    blocks(threads, format, values, bytes, options)
                })?;
            }
            _ => weights.fill(shared, values, options)?,
        }
        Ok(weights)
    }

    /// Computes codes and scales of a layout without blocks.
    fn fill<E: FlowEngine>(
        &mut self,
        shared: &mut WithFallback<'_, E>,
        values: &[f32],
        options: &BuildOptions,
    ) -> Result<(), EngineError> {
        let groups = match options.per_tensor {
            true => Groups::tensor(values.len())?,
            false => Groups::rows(self.rows, self.cols)?,
        };
        // Symmetric grids leave the lowest code of int8 and int4 unused.
        let method = match self.layout.codes().1 {
            1 => Method::Ternary {
                rule: options.rule,
                scale_rule: options.scale,
            },
            limit => Method::Symmetric { limit },
        };
        let mut codes = vec![0; values.len()];
        self.scales = vec![0.0; groups.count];
        let scales = &mut self.scales;
        let done = quantize(shared.engine, values, groups, method, &mut codes, scales);
        shared.or_threads(done, |threads| {
            quantize(threads, values, groups, method, &mut codes, scales)
        })?;
        let bytes = &mut self.bytes;
        Ok(pack::pack(
            self.layout,
            self.rows,
            self.cols,
            &codes,
            bytes,
        )?)
    }

    /// Returns the scales in the form of the file.
    pub(super) fn scale_bytes(&self) -> Vec<u8> {
        let scales = self.scales.iter();
        scales.flat_map(|scale| scale.to_le_bytes()).collect()
    }

    /// Returns the matrix, with its scales from [`Weights::scale_bytes`].
    pub(super) fn view<'a>(&'a self, scales: &'a [u8]) -> Result<Matrix<'a>, LinearError> {
        let matrix = Matrix::new(self.layout, self.rows, self.cols, &self.bytes)?;
        match self.scales.as_slice() {
            [] => Ok(matrix),
            [scale] => matrix.with_scale(*scale),
            _ => matrix.with_row_scales(Table::Bytes(scales)),
        }
    }

    /// Returns the value of 1 in the sum of a row, divided by the value of 1 in the inputs.
    pub(super) fn unit(&self, row: usize) -> f64 {
        let scale = self.scales.get(row).or(self.scales.first());
        f64::from(self.layout.unit()) * f64::from(*scale.unwrap_or(&1.0))
    }
}

/// Encodes blocks of a matrix.
fn blocks<E: FlowEngine>(
    engine: &mut E,
    format: Format,
    values: &[f32],
    bytes: &mut [u8],
    options: &BuildOptions,
) -> Result<(), EngineError> {
    let (rule, scale) = match format.is_ternary() {
        true => (options.rule, options.scale),
        false => (Rule::AbsMax, ScaleRule::Rule),
    };
    let done = engine.encode_blocks(format, rule, scale, values, bytes);
    done.map(drop).map_err(Into::into)
}

/// Computes the codes of a matrix, and the scale of each group.
fn quantize<E: FlowEngine>(
    engine: &mut E,
    values: &[f32],
    groups: Groups,
    method: Method,
    codes: &mut [i8],
    scales: &mut [f32],
) -> Result<(), EngineError> {
    let out = Output {
        codes,
        scales,
        zero_points: &mut [],
    };
    let mut bins = vec![MagnitudeBin::EMPTY; method.scratch_len(groups.len)];
    let run = || -> Result<(), <E as QuantizeEngine>::Error> {
        let mut tensor = engine.tensor(values, groups, out)?;
        quant::quantize(&mut tensor, method, &mut bins)?;
        tensor.finish()
    };
    run().map_err(Into::into)
}
