//! The steps of a language model, on any engine.

use tercet_core::engine::ModelEngine;
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::model::attention::Attention;
use tercet_core::model::{FloatMatrix, Gate};
use tercet_host::engine::{EngineError, FlowEngine};

use super::{AnyEngine, any};

impl<D: FlowEngine> ModelEngine for AnyEngine<'_, D> {
    type Failure = EngineError;

    fn multiply_floats(
        &mut self,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.multiply_floats(weights, x, out).map_err(Into::into))
    }

    fn matmat_wide(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        (sums, scratch): (&mut [i64], &mut [u32]),
    ) -> Result<(), EngineError> {
        let room = (sums, scratch);
        any!(AnyEngine, self, engine => engine.matmat_wide(layer, x, x_scales, out, room).map_err(Into::into))
    }

    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.attend(attention, scores, sums, out).map_err(Into::into))
    }

    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.gate(gate, x, up).map_err(Into::into))
    }
}
