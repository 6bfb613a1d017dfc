//! FP8 codes and format choice, which core computes on every machine; FP8 tensors, calibration's counting and error
//! measures, which an engine computes.

use super::{Digest, input};
use crate::engine::QuantizeEngine;
use crate::number::Random;
use crate::quant::adaptive::{Adaptive, Cost};
use crate::quant::calibrate::{RangeRule, Scheme, calibrate};
use crate::quant::fp8::{Fp8, Overflow};
use crate::quant::{Comparison, Histogram};

/// Eight bits of histogram: 2 KiB, so that the case fits the smallest boards.
const BITS: u32 = 8;

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("quant/fp8/e4m3", fp8(Fp8::E4M3));
    report("quant/fp8/e5m2", fp8(Fp8::E5M2));
    report("quant/adaptive", adaptive());
}

pub(super) fn run_engine<E: QuantizeEngine>(
    engine: &mut E,
    report: &mut dyn FnMut(&'static str, u64),
) {
    report("quant/fp8/e4m3/tensor", fp8_tensor(engine, Fp8::E4M3));
    report("quant/fp8/e5m2/tensor", fp8_tensor(engine, Fp8::E5M2));
    report("quant/calibrate", calibration(engine));
    report("quant/measure", measure(engine));
}

#[inline(never)]
fn fp8(format: Fp8) -> u64 {
    let mut digest = Digest::new();
    for code in 0..=255u8 {
        let value = format.decode(code);
        if !value.is_nan() {
            digest.f32(value);
        }
    }
    input::for_each(10, &mut |values| {
        for &x in values {
            digest.bytes(&[
                format.encode(x, Overflow::Saturate),
                format.encode(x, Overflow::Special),
            ]);
        }
    });
    digest.value()
}

/// Whole tensors and one with an infinity, with scales of which some are invalid.
#[inline(never)]
fn fp8_tensor<E: QuantizeEngine>(engine: &mut E, format: Fp8) -> u64 {
    let mut digest = Digest::new();
    input::for_each(14, &mut |values| {
        for scale in [0.0625, 1.0e-40, 0.0, f32::INFINITY] {
            let mut codes = [0; input::MAX];
            let Some(codes) = codes.get_mut(..values.len()) else {
                return;
            };
            let done = engine.quantize_fp8(format, scale, values, codes);
            if digest.outcome(done).is_none() {
                continue;
            }
            digest.bytes(codes);
            let mut restored = [0.0; input::MAX];
            let restored = restored.get_mut(..values.len()).unwrap_or_default();
            digest.outcome(engine.dequantize_fp8(format, scale, codes, restored));
            for value in restored {
                // A code of NaN may decode to any NaN.
                if !value.is_nan() {
                    digest.f32(*value);
                }
            }
        }
    });
    let bad = [1.0, f32::NEG_INFINITY, f32::NAN];
    digest.outcome(engine.quantize_fp8(format, 1.0, &bad, &mut [0; 3]));
    digest.outcome(engine.quantize_fp8(format, 1.0, &[1.0f32], &mut [0; 2]));
    digest.outcome(engine.dequantize_fp8(format, 1.0, &[0; 2], &mut [0.0; 3]));
    digest.value()
}

#[inline(never)]
fn calibration<E: QuantizeEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    input::for_each(11, &mut |values| {
        let mut buckets = [0; Histogram::<BITS>::BUCKETS];
        let Some(mut histogram) = digest.outcome(Histogram::<BITS>::new(&mut buckets)) else {
            return;
        };
        digest.outcome(engine.histogram(values, &mut histogram));
        let methods = [
            RangeRule::AbsMax,
            RangeRule::MinMax,
            RangeRule::Percentile { ppm: 990_000 },
            RangeRule::Mse,
            RangeRule::Entropy,
        ];
        // The searches take seconds per call with soft f64, so only one size of each family has them.
        let methods = if values.len() == 31 {
            &methods[..]
        } else {
            &methods[..3]
        };
        for &method in methods {
            for scheme in [Scheme::Symmetric, Scheme::Affine] {
                if let Some(found) = digest.outcome(calibrate(&histogram, method, scheme)) {
                    digest.f32s(&[found.low, found.high, found.grid.scale]);
                    digest.i8s(&[found.grid.zero_point, found.grid.low, found.grid.high]);
                }
            }
        }
    });
    digest.value()
}

#[inline(never)]
fn adaptive() -> u64 {
    const TENSORS: usize = 9;
    const FORMATS: usize = 4;
    let mut digest = Digest::new();
    let mut random = Random::new(12);
    for _ in 0..16 {
        let mut costs = [None; TENSORS * FORMATS];
        for (index, cost) in costs.iter_mut().enumerate() {
            let level = (index % FORMATS) as u64 + 1;
            let bytes = 100 * level + random.below(90);
            let error = random.below(1 << 20) as f64 / (level * level) as f64;
            *cost = Some(Cost { bytes, error });
        }
        let problem = Adaptive {
            formats: FORMATS,
            costs: &costs,
            weights: None,
            budget: 1000 + random.below(2500),
        };
        let mut choice = [0; TENSORS];
        if let Some(found) = digest.outcome(problem.choose(&mut choice)) {
            digest.u64(found.bytes);
            digest.f64(found.error);
            digest.f64(found.bound);
            for format in choice {
                digest.u64(format as u64);
            }
        }
    }
    digest.value()
}

#[inline(never)]
fn measure<E: QuantizeEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    input::for_each(13, &mut |values| {
        // A constant, so that no second copy is created on the stack.
        let mut comparison = const { Comparison::new() };
        // In chunks, whose lengths must not matter.
        for values in values.chunks(31) {
            let mut restored = [0.0; 31];
            let Some(restored) = restored.get_mut(..values.len()) else {
                return;
            };
            for (to, from) in restored.iter_mut().zip(values) {
                *to = (from * 8.0) as i32 as f32 * 0.125;
            }
            digest.outcome(engine.compare(&mut comparison, values, restored));
        }
        if let Some(found) = comparison.finish() {
            for value in [
                found.mse,
                found.relative_error,
                found.sqnr_db,
                found.cosine,
                found.max_error,
            ] {
                if !value.is_nan() {
                    digest.f64(value);
                }
            }
        }
    });
    digest.value()
}
