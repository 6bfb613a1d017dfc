//! Training steps on the calling thread: a run's threads are its workers, each with its own sequences.

use std::cell::RefCell;

use tercet_core::engine::{TrainEngine, WeightScratch};
use tercet_core::model::{Gate, ModelError};
use tercet_core::quant::activations::Norm;
use tercet_core::scalar::Scalar;
use tercet_core::train::{AttentionGradient, AttentionGradients, AttentionScratch, Inputs};
use tracing::trace_span;

use super::Threads;
use crate::simd::train::GradientScratch;

thread_local! {
    /// Kept, because new memory is expensive.
    static ROOM: RefCell<GradientScratch> = RefCell::default();
}

impl Threads {
    /// Returns the bytes that this engine keeps per thread for gradients of matrices, for `sequences` sequences of
    /// `length` rows of at most `cols` columns.
    pub(crate) fn gradient_scratch(self, length: usize, sequences: usize, cols: usize) -> usize {
        self.backend.gradient_scratch(length, sequences, cols)
    }
}

impl TrainEngine for Threads {
    fn power_rows(
        &mut self,
        dy: &[f32],
        codes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, ModelError> {
        let cols = (dy.len() / scales.len().max(1)).max(1);
        let mut within = true;
        let rows = dy.chunks_exact(cols).zip(codes.chunks_exact_mut(cols));
        for ((dy, codes), scale) in rows.zip(scales) {
            let found = self.backend.power_row(dy, codes);
            within &= found.is_some();
            *scale = found.unwrap_or(0.0);
        }
        Ok(within)
    }

    fn power_planes(
        &mut self,
        dy: &[f32],
        planes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, ModelError> {
        let cols = (dy.len() / scales.len().max(1)).max(1);
        let (high, low) = planes.split_at_mut(dy.len());
        let mut within = true;
        let planes = high.chunks_exact_mut(cols).zip(low.chunks_exact_mut(cols));
        for ((dy, (high, low)), scale) in dy.chunks_exact(cols).zip(planes).zip(scales) {
            let found = self.backend.power_row_wide(dy, high, low);
            within &= found.is_some();
            *scale = found.unwrap_or(0.0);
        }
        Ok(within)
    }

    fn weight_gradient(
        &mut self,
        dy: &[f32],
        x: &Inputs<'_>,
        scratch: &mut WeightScratch<'_>,
        sums: &mut [i64],
    ) -> Result<bool, ModelError> {
        let _span =
            trace_span!("weight_gradient", rows = x.scales.len(), cols = x.cols()).entered();
        let found = ROOM.with_borrow_mut(|room| self.backend.weight_gradient(dy, x, room, sums));
        match found {
            Some(within) => Ok(within),
            None => Scalar.weight_gradient(dy, x, scratch, sums),
        }
    }

    fn norm_gradient(
        &mut self,
        x: (&[f32], Norm<'_>),
        dy: &[f32],
        dx: (&mut [f32], bool),
        gains: &mut [i64],
        scratch: &mut [f32],
    ) -> Result<bool, ModelError> {
        let _span = trace_span!("norm_gradient", len = dy.len()).entered();
        Ok(self.backend.norm_gradient(x, dy, dx, gains, scratch))
    }

    fn gate_gradient(
        &mut self,
        gate: Gate,
        x: &mut [f32],
        up: &mut [f32],
        dh: &[f32],
    ) -> Result<(), ModelError> {
        let _span = trace_span!("gate_gradient", len = dh.len()).entered();
        self.backend.gate_gradient(gate, x, up, dh);
        Ok(())
    }

    fn attention_gradient(
        &mut self,
        job: &AttentionGradient<'_, '_, '_>,
        scratch: &mut AttentionScratch<'_>,
        out: &mut AttentionGradients<'_>,
    ) -> Result<bool, ModelError> {
        let _span = trace_span!("attention_gradient", sequences = job.sequences()).entered();
        let mut within = true;
        for sequence in 0..job.sequences() {
            for kv in 0..job.attention.cache.shape().heads {
                let head = (sequence, kv);
                within &= self.backend.attention_gradient(job, head, scratch, out);
            }
        }
        Ok(within)
    }
}
