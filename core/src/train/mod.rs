//! Training of `bitnet` models. Every sum over tokens is a sum of integers, so that the trained model has the same
//! bits for any division of a batch, any number of threads and any engine.
//!
//! The forward pass is [`crate::model`]'s. These are the rules of the backward pass and of the update. `fl` is one
//! rounding to f32, and nothing is fused. The loss is the sum of the costs of all targets; the update divides once by
//! their number.
//! 1. **A group of gradients** has int8 codes times a power of two: the least e with max |v| ≤ 127 · 2ᵉ, but at least
//!    a floor ([`exponent`]). Codes are v · 2⁻ᵉ rounded half to even. The floor is [`FREE_FLOOR`] for a single row,
//!    [`WEIGHT_FLOOR`] in rule 4, and [`ATTENTION_FLOOR`] for groups of rows in attention. Gradients pass through
//!    rounding unchanged.
//! 2. **Cross-entropy**: [`loss`]; with a teacher, [`SoftTargets`].
//! 3. **Input of a matrix**: fl(f32(Σ c · w) · s) · 2ᵉ, with c and e the codes of a row of dy, and s the matrix's
//!    scale. For the head, the codes are those of fl(dy · d), with d the scale of the embedding's row. They have 16
//!    bits (|v| ≤ 127 · 2ᵉ⁺⁸, and the floor of e is lower by 8), and there is no s.
//! 4. **Weights of a matrix**, including the head's: groups of fl(dy · s), with s the scale of the row's activations.
//!    A group has one output and [`GROUP`] rows of a sequence, counted from its first row ([`quantize`]). Σ c · x is
//!    an integer in units of 2 to the power of [`WEIGHT_FLOOR`] ([`accumulate`]).
//! 5. **Norms**: [`norm`]. **The gate**: [`gate`]. **Attention**: [`AttentionGradient`].
//! 6. **Rotation**: for a pair of gradients, fl(fl(a · cos) + fl(b · sin)) and fl(fl(b · cos) − fl(a · sin)).
//! 7. **Order**: if matrices share an input, their gradients add as fl(gate + up) and fl(fl(q + k) + v). The
//!    gradients of the norms before attention and before the feed-forward network are added to the residual's, each
//!    as fl(residual + norm). Those of sub-norms and of the last norm are passed on directly.
//! 8. **Look-up in the embedding**: each row's gradient is rounded once to units of 2 to the power of
//!    [`WEIGHT_FLOOR`], and added to the head's sums.
//! 9. **Update**: [`AdamW`], [`Schedule`]; with less memory, [`AdamW::update_lean`], and second moments as
//!    [`factored()`]. **Codes**: [`ternary`], [`row_codes`].
//!
//! An exponent above its ceiling, a number that is not finite, or a term too large for its units ends the step with a
//! [`Fault`] that names tensor and layer. Exponents have floors, without which sums would not fit 64 bits.

mod attention;
mod backward;
mod buffers;
mod codes;
mod factored;
mod gate;
mod kept;
mod lean;
mod linear;
mod loss;
mod memory;
mod norm;
mod optimizer;
mod power;
pub(crate) mod rows;
mod schedule;
mod shapes;
mod soft;
mod step;

pub use attention::{
    AttentionGradient, Gradients as AttentionGradients, Scratch as AttentionScratch,
    ScratchLengths as AttentionLengths,
};
pub use codes::{LEAST_SCALE, row_codes, ternary, transpose};
pub use factored::{FACTORED_COLUMNS, factor_mean, factored};
pub use gate::gate;
pub use kept::Activations;
pub use lean::{LEAN_BLOCK, LeanBlock, LeanSecond, lean_codes, lean_weights};
pub use linear::{GROUP, Inputs, accumulate, quantize};
pub use loss::loss;
pub use memory::{Memory, Needs, Transposed};
pub use norm::{GAIN_UNIT, norm};
pub use optimizer::{AdamW, Update, gradient, squares, unit};
pub use power::{
    ATTENTION_CEILING, ATTENTION_FLOOR, ATTENTION_GROUPS, FREE_FLOOR, WEIGHT_CEILING, WEIGHT_FLOOR,
    code, exponent, fixed, row as power_row, row_wide as power_row_wide,
};
pub use schedule::{Fall, Schedule};
pub use shapes::{Parameter, Shapes, Tensor};
pub use soft::{SoftTargets, soften};
pub use step::{Batch, Fault, GradientSums, Loss, gradients};
