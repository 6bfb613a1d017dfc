//! Quantizing on any engine.

use std::ops::RangeInclusive;

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Applied, Codes, Comparison, Groups, Histogram, Method, Plan, Report};
use tercet_core::scalar::{self, Scalar};
use tercet_host::engine::{EngineError, FlowEngine};
use tercet_host::parallel::{self, Threads};

use super::{AnyEngine, any};

impl<D: FlowEngine> QuantizeEngine for AnyEngine<'_, D> {
    type Error = EngineError;
    type Tensor<'a, T: Element>
        = AnyTensor<'a, D, T>
    where
        Self: 'a;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<AnyTensor<'a, D, T>, EngineError> {
        Ok(match self {
            Self::Scalar(engine) => AnyTensor::Scalar(Scalar::tensor(engine, values, groups, out)?),
            Self::Threads(engine) => {
                AnyTensor::Threads(Threads::tensor(engine, values, groups, out)?)
            }
            Self::Device(engine) => {
                AnyTensor::Device(engine.tensor(values, groups, out).map_err(Into::into)?)
            }
        })
    }

    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.histogram(values, histogram).map_err(Into::into))
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.dequantize(codes, range, out).map_err(Into::into))
    }

    fn quantize_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.quantize_fp8(format, scale, values, out).map_err(Into::into))
    }

    fn dequantize_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.dequantize_fp8(format, scale, codes, out).map_err(Into::into))
    }

    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.norm_quantize(x, norm, out, scales).map_err(Into::into))
    }

    fn compare<A: Element, B: Element>(
        &mut self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), EngineError> {
        any!(AnyEngine, self, engine => engine.compare(comparison, original, restored).map_err(Into::into))
    }
}

/// A tensor that an [`AnyEngine`] quantizes.
#[derive(Debug)]
pub enum AnyTensor<'a, D: QuantizeEngine + 'a, T: Element> {
    /// On core's loops.
    Scalar(scalar::Tensor<'a, T>),
    /// On the processor's threads.
    Threads(parallel::Tensor<'a, T>),
    /// On a device.
    Device(D::Tensor<'a, T>),
}

impl<'a, D, T: Element> QuantizeProblem for AnyTensor<'a, D, T>
where
    D: QuantizeEngine<Error: Into<EngineError>> + 'a,
{
    type Error = EngineError;

    fn groups(&self) -> Groups {
        any!(AnyTensor, self, tensor => tensor.groups())
    }

    fn stats(&mut self, group: usize) -> Result<Stats, EngineError> {
        any!(AnyTensor, self, tensor => tensor.stats(group).map_err(Into::into))
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, EngineError> {
        any!(AnyTensor, self, tensor => tensor.extremes(group).map_err(Into::into))
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), EngineError> {
        any!(AnyTensor, self, tensor => tensor.read_magnitudes(group, out).map_err(Into::into))
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), EngineError> {
        any!(AnyTensor, self, tensor => tensor.magnitudes(group, span, bins).map_err(Into::into))
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, EngineError> {
        any!(AnyTensor, self, tensor => tensor.apply(group, plan).map_err(Into::into))
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), EngineError> {
        any!(AnyTensor, self, tensor => tensor.set_scale(group, scale, zero_point).map_err(Into::into))
    }

    fn quantize_groups(
        &mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, EngineError> {
        any!(AnyTensor, self, tensor => tensor.quantize_groups(method, bins).map_err(Into::into))
    }

    fn finish(self) -> Result<(), EngineError> {
        any!(AnyTensor, self, tensor => tensor.finish().map_err(Into::into))
    }
}
