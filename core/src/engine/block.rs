//! The engine trait for GGUF blocks and BitNet's two-bit tensors.

use crate::block::{BlockError, Encoded, Format, bitnet_hf, i2_s};
use crate::number::Element;
use crate::quant::{Rule, ScaleRule};

/// An engine that encodes, decodes and multiplies GGUF blocks, and reads and writes BitNet's two-bit tensors. The
/// contracts are those of [`crate::block`]'s functions.
///
/// The methods for two-bit tensors have default implementations: core's loops.
pub trait BlockEngine {
    /// The engine's error; codec errors convert into it.
    type Error: From<BlockError> + core::fmt::Display;

    /// Same contract as [`crate::block::encode`].
    fn encode_blocks<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, Self::Error>;

    /// Same contract as [`crate::block::decode`].
    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Self::Error>;

    /// Same contract as [`crate::block::dot`].
    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, Self::Error>;

    /// Same contract as [`i2_s::decode`].
    fn decode_i2_s(
        &mut self,
        layout: i2_s::Interleave,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(i2_s::decode(layout, bytes, out)?)
    }

    /// Same contract as [`bitnet_hf::decode`].
    fn decode_bitnet_hf(
        &mut self,
        rows: usize,
        cols: usize,
        packed: &[u8],
        unit: f32,
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(bitnet_hf::decode(rows, cols, packed, unit, out)?)
    }

    /// Same contract as [`bitnet_hf::encode`].
    fn encode_bitnet_hf<T: Element>(
        &mut self,
        rows: usize,
        cols: usize,
        weights: &[T],
        s: f32,
        out: &mut [u8],
    ) -> Result<(), Self::Error> {
        Ok(bitnet_hf::encode(rows, cols, weights, s, out)?)
    }
}
