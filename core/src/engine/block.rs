//! What an engine does with GGUF blocks.

use crate::block::{BlockError, Encoded, Format};
use crate::number::Element;
use crate::quant::{Rule, ScaleRule};

/// An engine that encodes, decodes and multiplies GGUF blocks; the contracts are those of [`crate::block`]'s functions.
pub trait BlockEngine {
    /// What can fail; codec refusals convert into it.
    type Error: From<BlockError> + core::fmt::Display;

    /// As [`crate::block::encode`].
    fn encode<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, Self::Error>;

    /// As [`crate::block::decode`].
    fn decode(&mut self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), Self::Error>;

    /// As [`crate::block::dot`].
    fn dot(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, Self::Error>;
}
