//! Who does the steps of a conversion: the threads of the processor, or an engine that was given.
//!
//! A conversion reads a tensor chunk by chunk and decides by what the chunks tell; these are the steps over the values
//! themselves. Each has the same bits by either.

pub(super) mod chunked;
pub(super) mod tiled;

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, Output};
use tercet_core::number::Stats;
use tercet_core::palette::{self, Encoded};
use tercet_core::quant::{Applied, Groups, Method, Plan};

use super::codec::Codec;
use super::measure::Loss;
use super::settled::Settled;
use super::span::Span;
use super::weighed::Weighed;
use crate::Error;

/// Values of a group that one thread takes whole; of a larger one, values a task.
pub(super) const PALETTE_TILE: usize = 1 << 16;

/// Does the steps of conversions, of one tensor after another.
pub(super) trait ConversionSteps: Send {
    /// Values of the longest group of a palette that is encoded as one; longer ones go through the processor in parts.
    const WHOLE_PALETTE: usize;

    /// Codes a chunk of whole blocks, or of floats, into as many bytes as they take; returns how many blocks were flushed.
    /// Measures it too where there is a `loss` to go on with.
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

    /// The statistics of a part of a group, with its sum or only its extremes. Indices count from the part's start.
    fn stats(&mut self, part: Span<'_, '_>, with_sum: bool) -> Result<Stats, Error>;

    /// Adds the magnitudes of a part of a group to `bins`, as [`tercet_core::engine::QuantizeProblem::magnitudes`].
    fn magnitudes(
        &mut self,
        part: Span<'_, '_>,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Error>;

    /// What a plan would code of a part of a group.
    fn count(&mut self, part: Span<'_, '_>, plan: &Plan) -> Result<Applied, Error>;

    /// Codes a chunk by what was settled for its groups, and measures it.
    fn apply(
        &mut self,
        chunk: Span<'_, '_>,
        settled: &Settled,
        out: &mut [u8],
        loss: &mut Loss,
    ) -> Result<(), Error>;

    /// Encodes groups of a palette whole.
    fn palette(
        &mut self,
        matrix: &Weighed<'_, '_>,
        layout: &palette::Layout,
        out: palette::Output<'_>,
    ) -> Result<Encoded, Error>;

    /// The name of the engine that is to do it all.
    fn name(&self) -> String;

    /// The names of who worked since the last call.
    fn worked(&mut self) -> String;

    /// Why the processor did work that an engine was to do, if it did.
    fn note(&self) -> Option<String>;
}
