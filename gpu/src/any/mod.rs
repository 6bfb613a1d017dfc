//! One type for any of the engines.

mod cluster;
mod model;
mod quantize;
mod search;

use std::fmt;

use tercet_core::block::{Encoded, Format, i2_s};
use tercet_core::engine::{BlockEngine, LinearEngine, PaletteEngine};
use tercet_core::linear::{I8Sym, Layer, Matrix, Rescale};
use tercet_core::number::Element;
use tercet_core::palette::{self, Palette};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_host::engine::{EngineError, FlowEngine};
use tercet_host::parallel::Threads;

pub use cluster::AnyClusters;
pub use quantize::AnyTensor;
pub use search::AnyBase;

/// An engine of every operation: core's loops, the processor's threads, or a device. Code written once for it runs on
/// each of them.
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_core::engine::BlockEngine;
/// use tercet_core::scalar::Scalar;
/// use tercet_gpu::AnyEngine;
/// use tercet_host::parallel::Threads;
///
/// let engines: [AnyEngine<'_, Scalar>; 2] =
///     [AnyEngine::Scalar(Scalar), AnyEngine::Threads(Threads::default())];
/// for mut engine in engines {
///     let mut out = [1.0; 32];
///     engine.decode_blocks(Format::Q8_0, &[0; 34], &mut out)?;
///     assert_eq!(out, [0.0; 32]);
/// }
/// # Ok::<(), tercet_host::engine::EngineError>(())
/// ```
#[derive(Debug)]
pub enum AnyEngine<'d, D> {
    /// Core's loops on the calling thread.
    Scalar(Scalar),
    /// The processor's kernels, on all threads or the calling one.
    Threads(Threads),
    /// A borrowed device.
    Device(&'d mut D),
}

/// Evaluates the same expression for each variant of an enum.
macro_rules! any {
    ($kind:ident, $any:expr, $it:ident => $body:expr) => {
        match $any {
            $kind::Scalar($it) => $body,
            $kind::Threads($it) => $body,
            $kind::Device($it) => $body,
        }
    };
}
use any;

impl<D: FlowEngine + fmt::Debug> FlowEngine for AnyEngine<'_, D> {
    fn name(&self) -> String {
        any!(AnyEngine, self, engine => engine.name())
    }

    fn team(&self) -> usize {
        any!(AnyEngine, self, engine => engine.team())
    }

    fn is_pool(&self) -> bool {
        any!(AnyEngine, self, engine => engine.is_pool())
    }
}

impl<D: FlowEngine> BlockEngine for AnyEngine<'_, D> {
    type Error = EngineError;

    fn encode_blocks<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, EngineError> {
        any!(AnyEngine, self, engine => engine.encode_blocks(format, rule, scale, values, out).map_err(Into::into))
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.decode_blocks(format, bytes, out).map_err(Into::into))
    }

    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, EngineError> {
        any!(AnyEngine, self, engine => engine.dot_blocks(format, bytes, x, x_scale).map_err(Into::into))
    }

    fn decode_i2_s(
        &mut self,
        layout: i2_s::Interleave,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.decode_i2_s(layout, bytes, out).map_err(Into::into))
    }

    fn decode_bitnet_hf(
        &mut self,
        rows: usize,
        cols: usize,
        packed: &[u8],
        unit: f32,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.decode_bitnet_hf(rows, cols, packed, unit, out).map_err(Into::into))
    }

    fn encode_bitnet_hf<T: Element>(
        &mut self,
        rows: usize,
        cols: usize,
        weights: &[T],
        s: f32,
        out: &mut [u8],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.encode_bitnet_hf(rows, cols, weights, s, out).map_err(Into::into))
    }
}

impl<D: FlowEngine> PaletteEngine for AnyEngine<'_, D> {
    type Error = EngineError;

    fn palette_scratch_len(&self, layout: &palette::IndexMatrix) -> usize {
        any!(AnyEngine, self, engine => engine.palette_scratch_len(layout))
    }

    fn encode_palette<T: Element>(
        &mut self,
        layout: &palette::IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: palette::Output<'_>,
        scratch: &mut [u64],
    ) -> Result<palette::Encoded, EngineError> {
        any!(AnyEngine, self, engine => engine.encode_palette(layout, values, importances, out, scratch).map_err(Into::into))
    }

    fn decode_palette(
        &mut self,
        palette: &Palette<'_>,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.decode_palette(palette, out).map_err(Into::into))
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.multiply_palette(palette, x, x_scale, out).map_err(Into::into))
    }
}

impl<D: FlowEngine> LinearEngine for AnyEngine<'_, D> {
    type Error = EngineError;

    fn product_scratch_len(&self, weights: &Matrix<'_>) -> usize {
        any!(AnyEngine, self, engine => engine.product_scratch_len(weights))
    }

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.sums(layer, x, out, scratch).map_err(Into::into))
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.matvec(layer, x, x_scale, out, scratch).map_err(Into::into))
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.dense(layer, rescale, x, out, scratch).map_err(Into::into))
    }

    fn sums_many(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.sums_many(layer, x, out, scratch).map_err(Into::into))
    }

    fn dense_many(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.dense_many(layer, rescale, x, out, scratch).map_err(Into::into))
    }

    fn matmat(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.matmat(layer, x, x_scales, out, scratch).map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::conformance::check_engine;

    use super::*;

    /// `tercet verify` shows the same for threads, and the tests on a device for that.
    #[test]
    fn core_s_loops_are_reached_as_they_are() {
        let mut engine = AnyEngine::<Scalar>::Scalar(Scalar);
        assert_eq!(check_engine(&mut engine), Ok(111));
    }
}
