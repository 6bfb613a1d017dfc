//! Codes of ternary matrices with either rule.

use half::f16;
use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::quant::ternary::{Rule, ScaleRule};
use tercet_core::quant::{Groups, Method};
use tercet_core::train::{LEAST_SCALE, ternary};

use crate::parallel::Threads;

/// Computes the codes of a matrix with one scale, in f16: absmean as in [`ternary`], otherwise the rule's own threshold
/// and scale. `None` if the scale is below [`LEAST_SCALE`] or too large for f16, or a weight is not finite.
pub(super) fn codes(rule: Rule, weights: &[f32], codes: &mut [i8]) -> Option<f16> {
    if rule == Rule::AbsMean {
        return ternary(weights, codes);
    }
    let groups = Groups::tensor(weights.len()).ok()?;
    let (mut scales, mut zero_points) = ([0.0], [0]);
    let out = Output {
        codes,
        scales: &mut scales,
        zero_points: &mut zero_points,
    };
    let mut engine = Threads::default();
    let tensor = engine.tensor(weights, groups, out).ok()?;
    tensor
        .quantize(Method::ternary(rule, ScaleRule::Rule))
        .ok()?;
    let [scale] = scales.map(f16::from_f32);
    (scale.to_f32() >= LEAST_SCALE && scale.is_finite()).then_some(scale)
}
