//! Codes and scales back to floats, on rayon's threads.

use rayon::prelude::*;
use tercet_core::quant::{Codes, Groups, QuantError};

use super::{TILE, moved};

/// Dequantizes in parallel with one of core's decoders ([`tercet_core::quant::ternary::dequantize`], `int8`'s, `int4`'s).
///
/// Errors are the decoder's; a refused code's index is the lowest in the tensor, and what `out` holds then is
/// left open.
pub fn dequantize(
    codes: Codes<'_>,
    out: &mut [f32],
    decode: fn(Codes<'_>, &mut [f32]) -> Result<(), QuantError>,
) -> Result<(), QuantError> {
    codes.check(out.len())?;
    let mut rest = out;
    let mut start = 0;
    let mut jobs = Vec::new();
    for piece in pieces(codes, TILE) {
        let (head, tail) = rest.split_at_mut(piece.codes.len());
        jobs.push((start, piece, head));
        start += piece.codes.len() as u64;
        rest = tail;
    }
    let results: Vec<_> = jobs
        .into_par_iter()
        .map(|(start, piece, out)| decode(piece, out).map_err(|error| moved(error, start)))
        .collect();
    results.into_iter().collect()
}

/// Cuts a tensor that [`Codes::check`] accepts: small groups into runs of whole groups, large ones into tiles.
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
            // One group, so each tile is a group of its own with the same scale.
            for codes in codes.chunks(tile) {
                let len = codes.len();
                pieces.push(piece(codes, Groups { count: 1, len }));
            }
        }
    }
    pieces
}
