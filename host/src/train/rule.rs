//! Codes of ternary matrices with either rule, and with a share of zeros.

use half::f16;
use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::quant::ternary::{Rule, ScaleRule};
use tercet_core::quant::{Groups, Method};
use tercet_core::train::{LEAST_SCALE, ternary};

use crate::parallel::Threads;

/// Computes codes as [`codes`] does, then sets those of the smallest magnitudes to 0, so that at least the share `zeros` of
/// all is 0. The scale stays. O(n).
pub(super) fn sparse(
    rule: Rule,
    zeros: Option<f32>,
    weights: &[f32],
    codes: &mut [i8],
) -> Option<f16> {
    let scale = self::codes(rule, weights, codes)?;
    if let Some(zeros) = zeros {
        let count = (weights.len() as f64 * f64::from(zeros)).ceil() as usize;
        // Patterns of magnitudes are in the order of these.
        let mut all: Vec<u32> = weights
            .iter()
            .map(|weight| weight.abs().to_bits())
            .collect();
        if let Some(place) = count.min(all.len()).checked_sub(1) {
            let (_, &mut most, _) = all.select_nth_unstable(place);
            for (code, weight) in codes.iter_mut().zip(weights) {
                if weight.abs().to_bits() <= most {
                    *code = 0;
                }
            }
        }
    }
    Some(scale)
}

/// Computes the codes of a matrix with one scale, in f16: absmean as in [`ternary`], otherwise the rule's own threshold
/// and scale. `None` if the scale is below [`LEAST_SCALE`] or too large for f16, or a weight is not finite.
fn codes(rule: Rule, weights: &[f32], codes: &mut [i8]) -> Option<f16> {
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
