//! The engine trait for training a model, in addition to running it.

use super::ModelEngine;
use crate::model::Gate;
use crate::model::attention::PlainProducts;
use crate::quant::activations::Norm;
use crate::scalar::Scalar;
use crate::train::rows::{each_row, each_row_mut};
use crate::train::{self, AttentionGradient, AttentionGradients, AttentionScratch, Inputs};

/// Scratch of [`TrainEngine::weight_gradient`].
#[derive(Debug)]
pub struct WeightScratch<'a> {
    /// Codes: outputs · rows elements.
    pub codes: &'a mut [i8],
    /// Exponents: outputs · groups of rows.
    pub exponents: &'a mut [i32],
    /// Sums of a group: one per column.
    pub partial: &'a mut [i32],
}

/// An engine that trains models; the driver is [`crate::train::gradients`].
///
/// The default implementations define the result that every engine must return. Engines without a faster way use
/// them. Methods that return a `bool` return true if all numbers were within their bounds. If they were not, the
/// method's output is unspecified.
pub trait TrainEngine: ModelEngine {
    /// Computes the codes of rows of gradients, each with its own power of two ([`train::power_row`]), which it
    /// writes to `scales`. O(n).
    ///
    /// # Errors
    /// Those of the engine.
    fn power_rows(
        &mut self,
        dy: &[f32],
        codes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        let cols = dy.len().checked_div(scales.len()).unwrap_or(0).max(1);
        let mut within = true;
        let rows = each_row(dy, cols).zip(each_row_mut(codes, cols));
        for ((dy, codes), scale) in rows.zip(scales) {
            let found = train::power_row(dy, train::FREE_FLOOR, codes);
            within &= found.is_some();
            *scale = found.unwrap_or(0.0);
        }
        Ok(within)
    }

    /// Like [`TrainEngine::power_rows`], with 16-bit codes ([`train::power_row_wide`]): `planes` gets the high planes
    /// of all rows and then the low planes. O(n).
    ///
    /// # Errors
    /// Those of the engine.
    fn power_planes(
        &mut self,
        dy: &[f32],
        planes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        let cols = dy.len().checked_div(scales.len()).unwrap_or(0).max(1);
        let (high, low) = planes.split_at_mut_checked(dy.len()).unwrap_or_default();
        let mut within = true;
        let planes = each_row_mut(high, cols).zip(each_row_mut(low, cols));
        for ((dy, (high, low)), scale) in each_row(dy, cols).zip(planes).zip(scales) {
            let found = train::power_row_wide(dy, high, low);
            within &= found.is_some();
            *scale = found.unwrap_or(0.0);
        }
        Ok(within)
    }

    /// Adds the gradient of a matrix to `sums`, which has one row per output: [`train::quantize`] and
    /// [`train::accumulate`]. `dy` has one row of outputs per row of `x`. O(rows · outputs · columns).
    ///
    /// # Errors
    /// Those of the engine.
    fn weight_gradient(
        &mut self,
        dy: &[f32],
        x: &Inputs<'_>,
        scratch: &mut WeightScratch<'_>,
        sums: &mut [i64],
    ) -> Result<bool, Self::Failure> {
        let (rows, cols, groups) = (x.scales.len().max(1), x.cols().max(1), x.group_count());
        let within = train::quantize(dy, dy.len() / rows, x, scratch.codes, scratch.exponents);
        let partial = scratch.partial.get_mut(..cols).unwrap_or_default();
        let outputs = each_row(scratch.codes, rows);
        let outputs = outputs.zip(each_row(scratch.exponents, groups));
        for ((codes, exponents), sums) in outputs.zip(each_row_mut(sums, cols)) {
            train::accumulate(codes, exponents, x, partial, sums);
        }
        Ok(within)
    }

    /// Computes the gradients of rows of a norm, and writes them to `dx`, or adds them if `adds`. Adds the gradients
    /// of the gains to `gains`. [`crate::train`] defines the rules. `scratch` has one element per column. O(n).
    ///
    /// # Errors
    /// Those of the engine.
    fn norm_gradient(
        &mut self,
        (x, norm): (&[f32], Norm<'_>),
        dy: &[f32],
        (dx, adds): (&mut [f32], bool),
        gains: &mut [i64],
        scratch: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        Ok(train::norm(x, norm, dy, (dx, adds), gains, scratch))
    }

    /// Applies [`train::gate`]. O(n).
    ///
    /// # Errors
    /// Those of the engine.
    fn gate_gradient(
        &mut self,
        gate: Gate,
        x: &mut [f32],
        up: &mut [f32],
        dh: &[f32],
    ) -> Result<(), Self::Failure> {
        train::gate(gate, x, up, dh);
        Ok(())
    }

    /// Does [`AttentionGradient::head_by`] for every key head of every sequence.
    ///
    /// # Errors
    /// Those of the engine.
    fn attention_gradient(
        &mut self,
        job: &AttentionGradient<'_, '_, '_>,
        scratch: &mut AttentionScratch<'_>,
        out: &mut AttentionGradients<'_>,
    ) -> Result<bool, Self::Failure> {
        let mut within = true;
        for sequence in 0..job.sequences() {
            for kv in 0..job.attention.cache.shape().heads {
                within &= job.head_by(PlainProducts, (sequence, kv), scratch, out);
            }
        }
        Ok(within)
    }
}

impl TrainEngine for Scalar {}
