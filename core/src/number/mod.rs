//! The rules of computation for every engine: exact sums, rounding, roots, extremes, float sums in one order, and one
//! generator.
//!
//! Tercet gives the same bits on every machine, with any number of threads. These rules ensure that; each module
//! proves that its code follows them.
//!
//! 1. **Integers if possible.** Codes, counts, patterns of floats ([`bits`]) and sums that must not depend on order
//!    are integers. Ties go to the lowest index.
//! 2. **The mean of |x| is exact**, then rounded once to nearest even ([`ExactSum`], [`Stats`]). The state merges, so
//!    the result does not depend on blocks, lanes, threads or chunks.
//! 3. **Extremes do not depend on order.** They are compared as patterns, so −0 is below +0. NaN and infinities are
//!    found in the same pass and refused with the first index ([`max`]).
//! 4. **Float sums have one order**: 64 virtual lanes, halved to one, over runs of 65,536 terms whose totals are
//!    added in order ([`lanes`]). They are f32 for dot products and distances, f64 for squared errors. They continue,
//!    by a term or by a run, but two long ones do not merge: threads sum runs, and one thread appends them.
//! 5. **f32 and f64 are plain IEEE 754**: + − × ÷, compare, convert, and a correctly rounded square root ([`root`]).
//!    Round to nearest, ties to even; subnormals are kept. Nothing is fused; there are no reciprocal or root
//!    estimates, and no platform mathematics library. A logarithm is a fixed sequence of these operations ([`log2`]).
//!    This holds under the default control register (no flush to zero).
//! 6. **Rounding belongs to the format**: half to even or half away from zero ([`round`]), as in the format's own
//!    reference.
//! 7. **16-bit floats convert first.** A tensor of f16 or bf16 gives the same bits as its f32 copy ([`Element`]).
//! 8. **Draws come from one generator** with a fixed stream ([`Random`]).

pub mod bits;
mod counter;
pub mod element;
pub mod exact_sum;
mod exp2_neg;
mod fixed;
mod kind;
pub mod lanes;
mod log2;
pub mod max;
pub mod random;
pub mod root;
pub mod round;
pub mod stats;
mod turn;

pub use counter::counter;
pub use element::Element;
pub use exact_sum::ExactSum;
pub use exp2_neg::exp2_neg;
pub use kind::{Kind, Plain};
pub use lanes::{Lanes, RUN, dot, squared_distance, squared_error, sum_of_squares};
pub use log2::log2;
pub use max::{abs_max, first_not_finite};
pub use random::Random;
pub use stats::Stats;
pub use turn::{rope_step, sin_cos};
