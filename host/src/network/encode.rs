//! A matrix of floats in a layout.

use tercet_core::block;
use tercet_core::engine::MagnitudeBin;
use tercet_core::linear::{Layout, LinearError, Matrix, Table, pack};
use tercet_core::quant::{self, Groups, Method, Rule, ScaleRule};
use tercet_core::scalar::Tensor;

use super::BuildOptions;

/// Weights as the file will hold them.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) layout: Layout,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) bytes: Vec<u8>,
    /// One, or one a row; none for blocks.
    pub(super) scales: Vec<f32>,
}

impl Weights {
    /// Quantizes a row-major matrix; a reason where the layout does not take it.
    pub(super) fn encode(
        values: &[f32],
        (rows, cols): (usize, usize),
        layout: Layout,
        options: &BuildOptions,
    ) -> Result<Self, String> {
        let len = layout.bytes(rows, cols).map_err(|error| match error {
            LinearError::Partial { .. } => format!("{error} in {}", layout.name()),
            other => other.to_string(),
        })?;
        let mut weights = Self {
            layout,
            rows,
            cols,
            bytes: vec![0; len],
            scales: Vec::new(),
        };
        match layout {
            Layout::Block(format) => {
                let (rule, scale) = match format.is_ternary() {
                    true => (options.rule, options.scale),
                    false => (Rule::AbsMax, ScaleRule::Rule),
                };
                block::encode(format, rule, scale, values, &mut weights.bytes)
                    .map_err(|error| error.to_string())?;
            }
            _ => weights.fill(values, options)?,
        }
        Ok(weights)
    }

    /// Codes and scales of a layout without blocks.
    fn fill(&mut self, values: &[f32], options: &BuildOptions) -> Result<(), String> {
        let groups = match options.per_tensor {
            true => Groups::tensor(values.len()),
            false => Groups::rows(self.rows, self.cols),
        };
        let groups = groups.map_err(|error| error.to_string())?;
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
        let mut bins = vec![MagnitudeBin::EMPTY; method.scratch_len(groups.len)];
        Tensor::new(values, groups, &mut codes, &mut self.scales, &mut [])
            .and_then(|mut tensor| quant::quantize(&mut tensor, method, &mut bins))
            .map_err(|error| error.to_string())?;
        let bytes = &mut self.bytes;
        pack::pack(self.layout, self.rows, self.cols, &codes, bytes)
            .map_err(|error| error.to_string())
    }

    /// The scales as the file will hold them.
    pub(super) fn scale_bytes(&self) -> Vec<u8> {
        let scales = self.scales.iter();
        scales.flat_map(|scale| scale.to_le_bytes()).collect()
    }

    /// The matrix, with its scales from [`Weights::scale_bytes`].
    pub(super) fn view<'a>(&'a self, scales: &'a [u8]) -> Result<Matrix<'a>, LinearError> {
        let matrix = Matrix::new(self.layout, self.rows, self.cols, &self.bytes)?;
        match self.scales.as_slice() {
            [] => Ok(matrix),
            [scale] => matrix.with_scale(*scale),
            _ => matrix.with_row_scales(Table::Bytes(scales)),
        }
    }

    /// What 1 in the sum of a row stands for, over what 1 in the inputs does.
    pub(super) fn unit(&self, row: usize) -> f64 {
        let scale = self.scales.get(row).or(self.scales.first());
        f64::from(self.layout.unit()) * f64::from(*scale.unwrap_or(&1.0))
    }
}
