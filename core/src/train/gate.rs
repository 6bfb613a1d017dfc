//! The gradient of the activation between gate and up.

use crate::model::Gate;
use crate::model::gate::steps;
use crate::number::exp2_neg;

/// Replaces x and up by their gradients for h = gate(x) · up, from the gradients of h. All slices have the same
/// length. O(n).
///
/// SiLU: let e and n be those of [`crate::model::gate`], n′ the other of 2³¹ and e, D = fl(2³¹ + e), σ = fl(n / D)
/// and τ = fl(n′ / D), which is 1 − σ. The gradient of up is fl(dh · fl(x · σ)); that of x is fl(fl(dh · up) · fl(σ ·
/// fl(1 + fl(x · τ)))). Squared ReLU: fl(dh · fl(x · x)) and fl(fl(dh · up) · fl(2 · x)), both 0 if x is below 0.
///
/// ```
/// use tercet_core::model::Gate;
/// use tercet_core::train::gate;
///
/// let (mut x, mut up) = ([0.0, 3.0], [2.0, 5.0]);
/// gate(Gate::SquaredRelu, &mut x, &mut up, &[1.0, 1.0]);
/// assert_eq!((x, up), ([0.0, 30.0], [0.0, 9.0]));
/// ```
#[inline(always)]
pub fn gate(gate: Gate, x: &mut [f32], up: &mut [f32], dh: &[f32]) {
    for ((x, up), &dh) in x.iter_mut().zip(up).zip(dh) {
        let (value, slope) = match gate {
            Gate::Silu => silu(*x),
            Gate::SquaredRelu if *x < 0.0 => (0.0, 0.0),
            Gate::SquaredRelu => (*x * *x, 2.0 * *x),
        };
        (*x, *up) = (dh * *up * slope, dh * value);
    }
}

/// Returns the activation and its derivative.
#[inline(always)]
fn silu(x: f32) -> (f32, f32) {
    const ONE: f32 = 2_147_483_648.0;
    let magnitude = f32::from_bits(x.to_bits() & 0x7FFF_FFFF);
    let e = exp2_neg(steps(magnitude)) as f32;
    let (n, other) = if x >= 0.0 { (ONE, e) } else { (e, ONE) };
    let sum = ONE + e;
    let (sigma, tau) = (n / sum, other / sum);
    (x * sigma, sigma * (1.0 + x * tau))
}
