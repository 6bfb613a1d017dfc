//! The activation between gate and up.
//!
//! SiLU (Elfwing and others, 2017): with e = [`exp2_neg`](|x| · log₂ e) in units of 2⁻³¹, and n = 2³¹ if x ≥ 0,
//! otherwise e, silu(x) = fl(x · fl(n / fl(2³¹ + e))). Squared ReLU (So and others, *Primer*, 2021): one product. The
//! result of either is multiplied by up: fl(gate(x) · up).

use crate::number::exp2_neg;

/// A gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Gate {
    /// x · sigmoid(x).
    Silu,
    /// max(x, 0)².
    SquaredRelu,
}

impl Gate {
    /// Applies the gate to a value.
    ///
    /// ```
    /// use tercet_core::model::Gate;
    ///
    /// assert_eq!(Gate::Silu.of(0.0), 0.0);
    /// assert_eq!(Gate::SquaredRelu.of(-3.0), 0.0);
    /// assert!((Gate::Silu.of(1.0) - 0.731_058_6).abs() < 1e-6);
    /// ```
    #[inline]
    pub fn of(self, x: f32) -> f32 {
        match self {
            Self::Silu => silu(x),
            // NaN stays NaN, so that values that are not finite are detected.
            Self::SquaredRelu if x < 0.0 => 0.0,
            Self::SquaredRelu => x * x,
        }
    }

    /// Replaces x by gate(x) · up. A plain loop, which engines compile for their processor. O(n).
    #[inline]
    pub fn apply(self, x: &mut [f32], up: &[f32]) {
        for (x, &up) in x.iter_mut().zip(up) {
            *x = self.of(*x) * up;
        }
    }
}

#[inline]
fn silu(x: f32) -> f32 {
    const ONE: f32 = 2_147_483_648.0;
    let magnitude = f32::from_bits(x.to_bits() & 0x7FFF_FFFF);
    let e = exp2_neg(steps(magnitude)) as f32;
    let n = if x >= 0.0 { ONE } else { e };
    x * (n / (ONE + e))
}

/// Returns the argument of [`exp2_neg`] for e to the power of −x: x · log₂ e, truncated to units of 2⁻²⁰. `x` is at
/// least 0. If x · log₂ e exceeds 31.99 or is NaN, it counts as 31.99.
#[inline]
pub fn steps(x: f32) -> u32 {
    let x = x * core::f32::consts::LOG2_E;
    let x = if x < 31.99 { x } else { 31.99 };
    (x * 1_048_576.0) as u32
}
