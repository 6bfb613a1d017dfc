//! What an engine does with a layer of weights.

use crate::linear::{I8Sym, Layer, LinearError, Rescale};

/// An engine that multiplies layers; the contracts are those of [`crate::linear`]'s functions.
pub trait LinearEngine {
    /// What can fail; refusals of the linear layer convert into it.
    type Error: From<LinearError> + core::fmt::Display;

    /// As [`crate::linear::sums`]; an engine with memory of its own may leave `scratch` alone once it has checked it.
    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// As [`crate::linear::matvec`].
    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// As [`crate::linear::dense`].
    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error>;
}
