//! The statistics of plain floats, on all threads.

use tercet_core::number::Stats;
use tercet_core::quant::QuantError;

use super::span::{Span, refuse};
use crate::Error;
use crate::parallel::merged;
use crate::simd::{Ahead, Backend};
use crate::source::{Source, tiles};

/// Returns the statistics of a part of a tensor, with its sum or only its extremes. Indices count from the part's
/// start.
pub(super) fn stats(part: Span<'_, '_>, with_sum: bool) -> Result<Stats, Error> {
    let of = match with_sum {
        true => Backend::stats,
        false => Backend::extremes,
    };
    let of = |values: &[f32]| of(Backend::default(), values, Ahead::STREAM);
    let stats = tiles(part.source, part.first, part.len, of, merged)?;
    Ok(stats.unwrap_or(Stats::EMPTY))
}

/// Returns the statistics of a whole tensor of at least one value, all finite.
pub(super) fn of_tensor(source: &Source<'_>) -> Result<Stats, Error> {
    let whole = Span {
        source,
        first: 0,
        len: source.values(),
    };
    let stats = stats(whole, true)?;
    match stats.first_bad {
        Some(index) => Err(refuse(source, 0, QuantError::NotFinite { index })),
        None => Ok(stats),
    }
}
