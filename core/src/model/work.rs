//! Norms and products of a pass, with activations in the forms that matrices take.

use super::attention::Attention;
use super::weights::{Values, Weights, floats};
use super::{Cache, Config, ModelError, Place, Sequence, norm};
use crate::engine::ModelEngine;
use crate::linear::{I8Sym, Layer};
use crate::quant::QuantError;
use crate::quant::activations::{self, Activations, Norm};

/// Memory of norms and products.
pub(crate) struct StepBuffers<'w> {
    /// Activations that are not quantized.
    pub(crate) input: &'w mut [f32],
    pub(crate) gains: &'w mut [f32],
    /// Scales of activations.
    pub(crate) scales: &'w mut [f32],
    pub(crate) query_scales: &'w mut [f32],
    pub(crate) scores: &'w mut [f32],
    /// 8-bit activations, or both planes of 16-bit ones.
    pub(crate) bytes: &'w mut [i8],
    /// 16-bit activations, or queries.
    pub(crate) halves: &'w mut [i16],
    pub(crate) longs: &'w mut [i64],
    pub(crate) words: &'w mut [u32],
}

impl StepBuffers<'_> {
    /// Returns space for a head, in memory that no norm uses at that time.
    pub(crate) fn rotated(&mut self, head: usize) -> &mut [f32] {
        self.gains.get_mut(..head).unwrap_or_default()
    }

    /// Returns a layer's attention for the prepared queries, and space for its scores and sums.
    pub(crate) fn attention<'c, 'm>(
        &'c mut self,
        config: &Config,
        places: &'c [Place],
        (cache, sequences): (&'c Cache<'m>, &'c [Sequence<'m>]),
        layer: usize,
    ) -> (Attention<'c, 'm>, &'c mut [f32], &'c mut [i64]) {
        let heads = places.len().saturating_mul(config.heads);
        let codes = heads.saturating_mul(config.head);
        let (queries, sink_queries) = self.halves.split_at_checked(codes).unwrap_or_default();
        let (scales, sink_scales) = self
            .query_scales
            .split_at_checked(heads)
            .unwrap_or_default();
        let attention = Attention {
            cache,
            sequences,
            places,
            layer,
            heads: config.heads,
            queries,
            scales,
            sink_queries,
            sink_scales,
        };
        (attention, self.scores, self.longs)
    }

    /// Computes activations from rows of vectors, in the forms that these matrices take. Calls `fault` with each row
    /// that has a value that is not finite.
    pub(crate) fn norm<E: ModelEngine>(
        &mut self,
        engine: &mut E,
        config: &Config,
        (x, rows): (&[f32], usize),
        gains: &[u8],
        inputs: &[&Weights<'_>],
        fault: &mut dyn FnMut(usize),
    ) -> Result<(), E::Failure> {
        let cols = gains.len() / 4;
        for (to, from) in self.gains.iter_mut().zip(floats(gains)) {
            *to = from;
        }
        let norm = (!gains.is_empty()).then(|| Norm {
            gains: self.gains.get(..cols).unwrap_or_default(),
            eps: config.eps,
        });
        let scales = self.scales.get_mut(..rows).unwrap_or_default();
        let len = x.len();
        if inputs.iter().any(|weights| !weights.takes_floats()) {
            if E::PARTS.wide(config) {
                let codes = self.halves.get_mut(..len).unwrap_or_default();
                quantize(engine, x, norm, scales, codes, |codes| {
                    Activations::A16(codes)
                })?;
                let planes = self
                    .bytes
                    .get_mut(..len.saturating_mul(2))
                    .unwrap_or_default();
                let (high, low) = planes.split_at_mut_checked(len).unwrap_or_default();
                activations::planes(codes, high, low);
            } else {
                let codes = self.bytes.get_mut(..len).unwrap_or_default();
                quantize(engine, x, norm, scales, codes, |codes| {
                    Activations::A8(codes)
                })?;
            }
            for (row, scale) in scales.iter().enumerate() {
                if scale.is_nan() {
                    fault(row);
                }
            }
        }
        if E::PARTS.floats() && inputs.iter().any(|weights| weights.takes_floats()) {
            let cols = len.checked_div(rows).unwrap_or(0).max(1);
            let mut input = self.input.chunks_exact_mut(cols);
            for (row, x) in x.chunks_exact(cols).enumerate() {
                let Some(input) = input.next() else { break };
                if !norm::floats(x, norm, input) {
                    fault(row);
                }
            }
        }
        Ok(())
    }

    /// Computes the products of a matrix with the activations of `rows` rows: `out` has one row for each.
    pub(crate) fn product<E: ModelEngine>(
        &mut self,
        engine: &mut E,
        wide: bool,
        rows: usize,
        weights: &Weights<'_>,
        out: &mut [f32],
    ) -> Result<(), E::Failure> {
        let len = rows.saturating_mul(weights.cols());
        let out = out
            .get_mut(..rows.saturating_mul(weights.rows()))
            .unwrap_or_default();
        match &weights.values {
            Values::None => {}
            Values::Floats(_) if !E::PARTS.floats() => {}
            Values::Floats(matrix) => {
                let x = self.input.get(..len).unwrap_or_default();
                engine.multiply_floats(matrix, x, out)?;
            }
            Values::Blocks(layer) if wide => {
                let x = symmetric(self.bytes, len.saturating_mul(2))?;
                let scales = self.scales.get(..rows).unwrap_or_default();
                engine.matmat_wide(layer, x, scales, out, (self.longs, self.words))?;
            }
            Values::Blocks(layer) => {
                let x = symmetric(self.bytes, len)?;
                let scales = self.scales.get(..rows).unwrap_or_default();
                engine.matmat(layer, x, scales, out, self.words)?;
            }
        }
        weights.finish(out);
        Ok(())
    }

    /// Does [`StepBuffers::product`] for several matrices, each into its own output.
    pub(crate) fn products<E: ModelEngine, const N: usize>(
        &mut self,
        engine: &mut E,
        (wide, rows): (bool, usize),
        products: [(&Weights<'_>, &mut [f32]); N],
    ) -> Result<(), E::Failure> {
        let are_blocks = |(weights, _): &(&Weights<'_>, _)| weights.layer().is_some();
        if wide || !products.iter().all(are_blocks) {
            for (weights, out) in products {
                self.product(engine, wide, rows, weights, out)?;
            }
            return Ok(());
        }
        let mut products = products.map(|(weights, out)| {
            let outputs = rows.saturating_mul(weights.rows());
            (weights, out.get_mut(..outputs).unwrap_or_default())
        });
        let cols = products.first().map_or(0, |(weights, _)| weights.cols());
        let x = symmetric(self.bytes, rows.saturating_mul(cols))?;
        let scales = self.scales.get(..rows).unwrap_or_default();
        let layers = products
            .each_mut()
            .map(|(weights, out)| (weights.layer().unwrap_or(Layer::NONE), &mut **out));
        engine.matmat_each(layers, x, scales, self.words)?;
        for (weights, out) in products {
            weights.finish(out);
        }
        Ok(())
    }
}

/// Returns the first codes, which are within ±127.
pub(crate) fn symmetric(codes: &[i8], len: usize) -> Result<I8Sym<'_>, ModelError> {
    Ok(I8Sym::new(codes.get(..len).unwrap_or_default())?)
}

/// Quantizes rows. A row that is not finite is not an engine's error; it gets the scale NaN.
fn quantize<E: ModelEngine, C>(
    engine: &mut E,
    x: &[f32],
    norm: Option<Norm<'_>>,
    scales: &mut [f32],
    codes: &mut [C],
    of: impl Fn(&mut [C]) -> Activations<'_>,
) -> Result<(), E::Failure> {
    if let Err(failure) = engine.norm_quantize(x, norm, of(codes), scales) {
        // Core's result for the same rows shows if the rows or the engine failed.
        return match activations::quantize(x, norm, of(codes), scales) {
            Err(QuantError::RowNotFinite { .. }) => Ok(()),
            _ => Err(failure.into()),
        };
    }
    Ok(())
}
