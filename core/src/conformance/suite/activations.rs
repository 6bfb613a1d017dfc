//! Normalized and quantized activations.

use super::{Digest, input};
use crate::engine::QuantizeEngine;
use crate::quant::activations::{Activations, Norm};

/// Largest number of rows into which an input is divided.
const ROWS: usize = 5;

pub(super) fn run<E: QuantizeEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    report("quant/activations/a8", digest(engine, false));
    report("quant/activations/a16", digest(engine, true));
}

/// Every input as one row and as several, with and without a norm; then rows of which some are not finite, and shapes
/// that do not fit.
#[inline(never)]
fn digest<E: QuantizeEngine>(engine: &mut E, wide: bool) -> u64 {
    let mut digest = Digest::new();
    input::for_each(10, &mut |values| {
        for rows in [1, 5, 3] {
            // Sums of squares of the smallest values are 0, plus the number that is added to them.
            for eps in [None, Some(1.0e-5), Some(0.0)] {
                rows_of(engine, wide, values, rows, eps, &mut digest);
            }
        }
    });
    let mut spoiled = [1.0; 40];
    spoiled[17] = f32::NAN;
    spoiled[33] = f32::NEG_INFINITY;
    rows_of(engine, wide, &spoiled, 5, Some(1.0e-5), &mut digest);
    rows_of(engine, wide, &spoiled, 5, None, &mut digest);
    digest.value()
}

#[inline(never)]
fn rows_of<E: QuantizeEngine>(
    engine: &mut E,
    wide: bool,
    values: &[f32],
    rows: usize,
    eps: Option<f32>,
    digest: &mut Digest,
) {
    let mut gains = [0.0; input::MAX];
    input::Family::Bell.fill(11, &mut gains);
    let gains = gains.get(..values.len() / rows).unwrap_or_default();
    let norm = eps.map(|eps| Norm { gains, eps });
    let mut scales = [0.0; ROWS];
    let scales = scales.get_mut(..rows).unwrap_or_default();
    let (mut narrow, mut words) = ([0i8; input::MAX], [0i16; input::MAX]);
    let (Some(narrow), Some(words)) = (
        narrow.get_mut(..values.len()),
        words.get_mut(..values.len()),
    ) else {
        return;
    };
    let out = match wide {
        false => Activations::A8(narrow),
        true => Activations::A16(words),
    };
    let done = engine.norm_quantize(values, norm, out, scales);
    if digest.outcome(done).is_none() && !scales.iter().any(|scale| scale.is_nan()) {
        // An error of the shape: nothing was written.
        return;
    }
    digest.i8s(narrow);
    for code in words.iter() {
        digest.bytes(&code.to_le_bytes());
    }
    for scale in scales.iter() {
        // NaN has many patterns.
        digest.f32(if scale.is_nan() { -1.0 } else { *scale });
    }
}
