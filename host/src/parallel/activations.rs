//! Normalizes and quantizes activations on rayon's threads.

use tercet_core::number::Plain;
use tercet_core::quant::QuantError;
use tercet_core::quant::activations::{self, Activations, Norm};

use super::Threads;
use super::each::{chunks, chunks_mut, items_mut};

/// Does [`activations::quantize`] with rows in parallel.
pub(super) fn norm_quantize(
    threads: &Threads,
    x: &[f32],
    norm: Option<Norm<'_>>,
    out: Activations<'_>,
    scales: &mut [f32],
) -> Result<(), QuantError> {
    let cols = activations::columns(x, norm, out.len(), scales.len())?;
    let backend = threads.backend;
    match out {
        Activations::A8(codes) => rows(threads, (x, cols), codes, scales, |x, codes| {
            backend.norm_a8(x, norm, codes)
        }),
        Activations::A16(codes) => rows(threads, (x, cols), codes, scales, |x, codes| {
            backend.norm_a16(x, norm, codes)
        }),
    }
    activations::finite(scales)
}

fn rows<C: Plain>(
    threads: &Threads,
    (x, cols): (&[f32], usize),
    codes: &mut [C],
    scales: &mut [f32],
    row: impl Fn(&[f32], &mut [C]) -> f32 + Sync,
) {
    let cols = cols.max(1);
    let rows = chunks(x, cols).zip(chunks_mut(codes, cols));
    let rows = rows.zip(items_mut(scales));
    // A task has as many values as for other operations.
    rows.at_least((threads.task() / cols).max(1))
        .each(|_, ((x, codes), scale)| *scale = row(x, codes));
}
