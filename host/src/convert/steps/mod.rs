//! The engine of a conversion's steps: the threads of the processor, or a given engine.
//!
//! A conversion reads a tensor chunk by chunk and makes decisions from the chunks; these are the steps over the values
//! themselves. Both give the same bits.

pub(super) mod chunked;
pub(super) mod tiled;

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output};
use tercet_core::number::Stats;
use tercet_core::palette::{self, Encoded};
use tercet_core::quant::{Applied, Groups, Method, Plan};

use super::codec::Codec;
use super::group_plans::GroupPlans;
use super::measure::Loss;
use super::span::Span;
use super::weighted::WeightedTensor;
use crate::Error;

/// Values of a group that one thread takes as a whole; for a larger group, values per task.
pub(super) const PALETTE_TILE: usize = 1 << 16;

/// Does the steps of conversions, of one tensor after another.
pub(super) trait ConversionSteps: Send {
    /// Returns the values of the longest group of a palette that is encoded as one; the processor encodes longer ones in parts.
    fn whole_palette(&self) -> usize;

    /// Encodes a chunk of whole blocks, or of floats, into as many bytes as they take; returns the number of flushed
    /// blocks. If there is a `loss` to continue, also measures the chunk.
    fn stream(
        &mut self,
        chunk: Span<'_, '_>,
        codec: &Codec,
        out: &mut [u8],
        loss: Option<&mut Loss>,
    ) -> Result<u64, Error>;

    /// Quantizes a chunk of whole groups, `groups` of them; returns how many were flushed.
    fn groups(
        &mut self,
        chunk: Span<'_, '_>,
        groups: Groups,
        method: Method,
        out: Output<'_>,
    ) -> Result<u64, Error>;

    /// Returns the statistics of a part of a group, with its sum or only its extremes. Indices count from the part's
    /// start.
    fn stats(&mut self, part: Span<'_, '_>, with_sum: bool) -> Result<Stats, Error>;

    /// Adds the magnitudes of a part of a group to `bins`, as [`tercet_core::engine::QuantizeProblem::magnitudes`].
    fn magnitudes(
        &mut self,
        part: Span<'_, '_>,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Error>;

    /// Counts the values of a part of a group that a plan would encode.
    fn count(&mut self, part: Span<'_, '_>, plan: &Plan) -> Result<Applied, Error>;

    /// Encodes a chunk with the decisions for its groups, and measures it.
    fn apply(
        &mut self,
        chunk: Span<'_, '_>,
        settled: &GroupPlans,
        out: &mut [u8],
        loss: &mut Loss,
    ) -> Result<(), Error>;

    /// Encodes whole groups of a palette.
    fn palette(
        &mut self,
        matrix: &WeightedTensor<'_, '_>,
        layout: &palette::IndexMatrix,
        out: palette::Output<'_>,
    ) -> Result<Encoded, Error>;

    /// Returns the name of the requested engine.
    fn name(&self) -> String;

    /// Returns the names of the engines that worked since the last call.
    fn worked(&mut self) -> String;

    /// Returns why the processor did work of the engine, if it did.
    fn note(&self) -> Option<String>;
}
