//! The ternary quantizer of TQ1_0, TQ2_0 and Q2_0.

use super::codec::Choice;
use crate::quant::ternary;

/// Writes the codes of one block of finite values and returns its scale; `None` if the scale's reciprocal is not
/// finite.
pub(super) fn quantize(values: &[f32], choice: Choice, codes: &mut [i8]) -> Option<f32> {
    // A block has 1 to 256 finite values, as `decide` requires.
    let decision = ternary::decide(values, choice.rule, choice.scale).ok()?;
    if decision.scale > 0.0 && !(1.0 / decision.scale).is_finite() {
        return None;
    }
    for (code, &x) in codes.iter_mut().zip(values) {
        *code = decision.code(x);
    }
    Some(decision.scale)
}
