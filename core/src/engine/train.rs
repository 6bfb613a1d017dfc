//! What an engine does with a model that is trained, beside running it.

use super::ModelEngine;
use crate::model::Gate;
use crate::model::attention::PlainProducts;
use crate::quant::activations::Norm;
use crate::scalar::Scalar;
use crate::train::rows::{each_row, each_row_mut};
use crate::train::{self, AttentionGradient, AttentionGradients, AttentionScratch, Inputs};

/// What [`TrainEngine::weight_gradient`] works in.
#[derive(Debug)]
pub struct WeightScratch<'a> {
    /// Codes: outputs · rows.
    pub codes: &'a mut [i8],
    /// Exponents: outputs · groups of rows.
    pub exponents: &'a mut [i32],
    /// Sums of a group: one for each column.
    pub partial: &'a mut [i32],
}

/// An engine that models are trained on; [`crate::train::gradients`] is the driver.
///
/// What is provided here says what any engine must give, and serves those that have nothing faster. Each method says whether all numbers were within
/// their bounds; if they were not, what it wrote is left open.
pub trait TrainEngine: ModelEngine {
    /// The codes of rows of gradients, each by its own power of two ([`train::power_row`]), which `scales` gets. O(n).
    ///
    /// # Errors
    /// The engine's own.
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

    /// As [`TrainEngine::power_rows`], in codes of 16 bits ([`train::power_row_wide`]): `planes` has the high planes of all rows and then the low ones. O(n).
    ///
    /// # Errors
    /// The engine's own.
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

    /// Adds the gradient of a matrix to `sums`, which has a row for each output: [`train::quantize`] and [`train::accumulate`]. `dy` has a row of
    /// outputs for each row of `x`. O(rows · outputs · columns).
    ///
    /// # Errors
    /// The engine's own.
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

    /// The gradients of rows of a norm, which are written to `dx`, or added there if `adds`; those of gains are added to `gains`.
    /// [`crate::train`] says how. `scratch` has an element for each column. O(n).
    ///
    /// # Errors
    /// The engine's own.
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

    /// [`train::gate`]. O(n).
    ///
    /// # Errors
    /// The engine's own.
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

    /// [`AttentionGradient::head_by`] of every head of keys of every sequence.
    ///
    /// # Errors
    /// The engine's own.
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
