//! Every way to quantize a tensor, compared with core's reference engine.

use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::number::Element;
use tercet_core::quant::{self, Grid, Groups, Method, Report, Rule, ScaleRule, quantize_in_order};
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaError};

use super::draw::Draw;

/// A quantized tensor, floats as patterns: +0 and −0 differ.
#[derive(Debug, PartialEq)]
pub struct Quantized {
    pub codes: Vec<i8>,
    pub scales: Vec<u32>,
    pub zero_points: Vec<i8>,
    pub report: Report,
}

/// Every method, and whether it needs zero points.
pub fn methods() -> Vec<Method> {
    let rules = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];
    let scales = [ScaleRule::Rule, ScaleRule::LeastSquares];
    let grid = |scale, zero_point| {
        Method::Fixed(Grid {
            scale,
            zero_point,
            low: -100,
            high: 90,
        })
    };
    let ternary = rules
        .into_iter()
        .flat_map(|rule| scales.map(|scale_rule| Method::Ternary { rule, scale_rule }));
    let grids = [
        Method::Symmetric { limit: 127 },
        Method::Symmetric { limit: 7 },
        Method::Affine,
        grid(0.01, 0),
        grid(0.003, -20),
        grid(0.0, 5),
    ];
    ternary.chain(grids).collect()
}

/// Runs `run` over an engine's problem, with output of its own.
pub fn quantized<E: QuantizeEngine, T: Element>(
    engine: &mut E,
    values: &[T],
    groups: Groups,
    points: bool,
    run: impl FnOnce(&mut E::Tensor<'_, T>) -> Result<Report, E::Error>,
) -> Result<Quantized, E::Error> {
    let mut codes = vec![99; values.len()];
    let mut scales = vec![f32::NAN; groups.count];
    let mut zero_points = vec![99; if points { groups.count } else { 0 }];
    let out = Output {
        codes: &mut codes,
        scales: &mut scales,
        zero_points: &mut zero_points,
    };
    let mut tensor = engine.tensor(values, groups, out)?;
    let report = run(&mut tensor)?;
    tensor.finish()?;
    Ok(Quantized {
        codes,
        scales: scales.iter().map(|scale| scale.to_bits()).collect(),
        zero_points,
        report,
    })
}

/// The same, of a tensor that is on the device.
pub fn resident<T: Element>(
    cuda: &mut Cuda,
    values: &[T],
    groups: Groups,
    points: bool,
    method: Method,
    bins: &mut [MagnitudeBin],
) -> Result<Quantized, CudaError> {
    let there = cuda.upload(values)?;
    let mut out = cuda.codes(groups, points)?;
    let report = cuda.quantize(&there, method, bins, &mut out)?;
    let mut codes = vec![99; values.len()];
    let mut scales = vec![f32::NAN; groups.count];
    let mut zero_points = vec![99; if points { groups.count } else { 0 }];
    cuda.read(out.codes(), &mut codes)?;
    cuda.read(out.scales(), &mut scales)?;
    if let Some(there) = out.zero_points() {
        cuda.read(there, &mut zero_points)?;
    }
    Ok(Quantized {
        codes,
        scales: scales.iter().map(|scale| scale.to_bits()).collect(),
        zero_points,
        report,
    })
}

pub fn bins() -> Vec<MagnitudeBin> {
    vec![MagnitudeBin::EMPTY; 512]
}

/// Compares every way to quantize with the reference.
pub fn compare<T: Element>(
    cuda: &mut Cuda,
    values: &[T],
    groups: Groups,
    method: Method,
    points: bool,
) {
    let case = format!("{:?}, {groups:?}, {method:?}, points {points}", T::KIND);
    let expected = quantized(&mut Scalar, values, groups, points, |tensor| {
        quant::quantize(tensor, method, &mut bins())
    })
    .map_err(CudaError::from);
    let found = quantized(cuda, values, groups, points, |tensor| {
        quant::quantize(tensor, method, &mut bins())
    });
    assert_eq!(found, expected, "{case}");
    let found = resident(cuda, values, groups, points, method, &mut bins());
    assert_eq!(found, expected, "resident, {case}");
}

/// Compares the steps one by one.
pub fn compare_steps<T: Element>(cuda: &mut Cuda, values: &[T], groups: Groups, method: Method) {
    let expected = quantized(&mut Scalar, values, groups, true, |tensor| {
        quantize_in_order(tensor, method, &mut bins())
    })
    .map_err(CudaError::from);
    let found = quantized(cuda, values, groups, true, |tensor| {
        quantize_in_order(tensor, method, &mut bins())
    });
    assert_eq!(found, expected, "{:?}, {groups:?}, {method:?}", T::KIND);
}

/// Kinds of data, each hard for something.
pub const KINDS: u64 = 7;

pub fn value(draw: &mut Draw, kind: u64) -> f32 {
    let unit = (draw.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    match kind {
        // Weights.
        0 => unit * 0.2,
        // Of any exponent.
        1 => f32::from_bits(draw.next() as u32 & 0xBFFF_FFFF),
        // Few distinct values, so many ties.
        2 => [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.25][draw.below(7) as usize],
        // Subnormal.
        3 => f32::from_bits(draw.next() as u32 & 0x8000_003F),
        // Large, with sums beyond f32.
        4 => unit * 2.0 * 3e38,
        // One sign.
        5 => -(unit.abs() + 1.0),
        // Zeros.
        _ => 0.0,
    }
}

pub fn values(seed: u64, kind: u64, len: usize) -> Vec<f32> {
    let mut draw = Draw(seed);
    (0..len).map(|_| value(&mut draw, kind)).collect()
}

/// Half as many exponents, so that few become infinities.
pub fn halves<T>(values: &[f32], narrow: impl Fn(f32) -> T) -> Vec<T> {
    values
        .iter()
        .map(|&x| narrow(x.clamp(-60_000.0, 60_000.0)))
        .collect()
}
