//! Eight-bit floats, on rayon's threads.

use tercet_core::number::{Element, Stats};
use tercet_core::quant::QuantError;
use tercet_core::quant::fp8::Fp8;

use super::each::{chunks, chunks_mut};
use super::{Threads, merged, moved};
use crate::simd::{Ahead, Stores};

impl Threads {
    /// Does [`Stats::extremes_of`] in parallel, which [`Fp8::scale`] needs. O(n), one pass.
    pub fn extremes<T: Element>(&self, values: &[T]) -> Stats {
        let extremes = |_, tile: &[T]| self.backend.extremes(tile, Ahead::STREAM);
        let all = chunks(values, self.task()).reduce(extremes, merged);
        all.unwrap_or(Stats::EMPTY)
    }
}

/// Does [`Fp8::quantize`] in parallel, with the same codes. O(n), one pass.
///
/// # Errors
/// Those of [`Fp8::quantize`], with the first bad value; the content of `out` is then unspecified.
///
/// # Example
/// ```
/// use tercet_core::engine::QuantizeEngine;
/// use tercet_core::quant::fp8::Fp8;
/// use tercet_host::parallel::Threads;
///
/// let values = [0.5f32, -1.0, 2.0, 0.0];
/// let mut threads = Threads::default();
/// let scale = Fp8::E4M3.scale(threads.extremes(&values).abs_max());
/// let (mut codes, mut restored) = ([0; 4], [0.0; 4]);
/// threads.quantize_fp8(Fp8::E4M3, scale, &values, &mut codes)?;
/// threads.dequantize_fp8(Fp8::E4M3, scale, &codes, &mut restored)?;
/// assert_eq!(codes, [0x6E, 0xF6, 0x7E, 0]);
/// assert_eq!(restored, values);
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
pub(super) fn quantize_fp8<T: Element>(
    threads: &Threads,
    format: Fp8,
    scale: f32,
    values: &[T],
    out: &mut [u8],
) -> Result<(), QuantError> {
    let usable = scale > 0.0 && scale < f32::INFINITY;
    if values.len() != out.len() || !usable {
        return format.quantize(scale, values, out);
    }
    let stores = Stores::of(out.len());
    let tiles = chunks(values, threads.task()).zip(chunks_mut(out, threads.task()));
    tiles.try_each(|tile, (values, out)| {
        if threads
            .backend
            .quantize_fp8(format, scale, values, out, stores)
        {
            stores.finish();
            return Ok(());
        }
        // Core finds out which value it is.
        let result = format.quantize(scale, values, out);
        result.map_err(|error| moved(error, (tile * threads.task()) as u64))
    })
}

/// Does [`Fp8::dequantize`] in parallel, with the same floats and errors. O(n).
pub(super) fn dequantize_fp8(
    threads: &Threads,
    format: Fp8,
    scale: f32,
    codes: &[u8],
    out: &mut [f32],
) -> Result<(), QuantError> {
    if codes.len() != out.len() {
        return format.dequantize(scale, codes, out);
    }
    let stores = Stores::of(size_of_val(out));
    let tiles = chunks(codes, threads.task()).zip(chunks_mut(out, threads.task()));
    tiles.each(|_, (codes, out)| {
        threads
            .backend
            .dequantize_fp8(format, scale, codes, out, stores);
        stores.finish();
    });
    Ok(())
}
