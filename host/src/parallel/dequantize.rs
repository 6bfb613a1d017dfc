//! Converts codes and scales back to floats on rayon's threads.

use std::ops::RangeInclusive;

use tercet_core::quant::{Codes, Groups, QuantError};

use super::Threads;
use super::each::items_mut;
use crate::simd::{Backend, Stores};

/// Writes `fl((code − zero_point) · scale)` in parallel, as core's decoders do, for codes of their range:
/// [`tercet_core::quant::ternary::RANGE`], `int8`'s or `int4`'s.
///
/// Errors are those of the decoders. The index of a refused code is the lowest in the tensor; the content of `out` is
/// then unspecified.
///
/// # Example
/// ```
/// use tercet_core::engine::QuantizeEngine;
/// use tercet_core::quant::{Codes, Groups, ternary};
/// use tercet_host::parallel::Threads;
///
/// let groups = Groups::rows(2, 2)?;
/// let codes = Codes { groups, codes: &[1, 0, -1, 1], scales: &[0.5, 2.0], zero_points: &[] };
/// let mut out = [0.0; 4];
/// Threads::default().dequantize(codes, ternary::RANGE, &mut out)?;
/// assert_eq!(out, [0.5, 0.0, -2.0, 2.0]);
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
pub(super) fn dequantize(
    threads: &Threads,
    codes: Codes<'_>,
    range: RangeInclusive<i8>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    codes.check(out.len())?;
    let stores = Stores::of(size_of_val(out));
    let mut rest = out;
    let mut start = 0;
    let mut jobs = Vec::new();
    for piece in pieces(codes, threads.task()) {
        let (head, tail) = rest.split_at_mut(piece.codes.len());
        jobs.push((start, piece, head));
        start += piece.codes.len();
        rest = tail;
    }
    items_mut(&mut jobs).try_each(|_, (start, piece, out)| {
        let outside = find_outside(piece.codes, &range);
        if let Some(index) = outside {
            let index = (*start + index) as u64;
            return Err(QuantError::CodeRange { index });
        }
        restore(threads.backend, *piece, out, stores);
        stores.finish();
        Ok(())
    })
}

/// Returns the first code outside a range. Usually there is none, which one pass without branches shows.
fn find_outside(codes: &[i8], range: &RangeInclusive<i8>) -> Option<usize> {
    let (from, to) = (*range.start(), *range.end());
    if (from, to) == (i8::MIN, i8::MAX) {
        return None;
    }
    let outside = |code: i8| (code < from) | (code > to);
    let any = codes.iter().fold(false, |any, &code| any | outside(code));
    any.then(|| codes.iter().position(|&code| outside(code)))?
}

/// Restores group by group.
fn restore(backend: Backend, piece: Codes<'_>, out: &mut [f32], stores: Stores) {
    let len = piece.groups.len;
    let mut zero_points = piece.zero_points.iter().copied();
    let groups = piece.codes.chunks(len).zip(out.chunks_mut(len));
    for ((codes, out), &scale) in groups.zip(piece.scales) {
        backend.dequantize(codes, zero_points.next().unwrap_or(0), scale, out, stores);
    }
}

/// Splits a tensor that [`Codes::check`] accepts: small groups into runs of whole groups, large ones into tiles.
fn pieces(whole: Codes<'_>, tile: usize) -> Vec<Codes<'_>> {
    let len = whole.groups.len;
    let groups = (tile / len).max(1);
    let mut pieces = Vec::new();
    let mut zero_points = whole.zero_points.chunks(groups);
    for (codes, scales) in whole
        .codes
        .chunks(groups * len)
        .zip(whole.scales.chunks(groups))
    {
        let zero_points = zero_points.next().unwrap_or_default();
        let piece = |codes, groups| Codes {
            groups,
            codes,
            scales,
            zero_points,
        };
        if len < tile {
            let count = scales.len();
            pieces.push(piece(codes, Groups { count, len }));
        } else {
            // There is one group, so each tile is a separate group with the same scale.
            for codes in codes.chunks(tile) {
                let len = codes.len();
                pieces.push(piece(codes, Groups { count: 1, len }));
            }
        }
    }
    pieces
}
