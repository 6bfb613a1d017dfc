//! Products with many rows of activations, one by one.

use super::{I8Sym, Layer, LinearError, expect};

/// Calls `product` with each row of activations, its index and its outputs.
pub(crate) fn rows<T, E: From<LinearError>>(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    out: &mut [T],
    mut product: impl FnMut(I8Sym<'_>, usize, &mut [T]) -> Result<(), E>,
) -> Result<(), E> {
    layer.check_many(x, out.len())?;
    let mut out = out.chunks_exact_mut(layer.weights().rows().max(1));
    for (row, x) in x.rows(layer.weights().cols()).enumerate() {
        // A matrix without rows has no outputs.
        let out = out.next().unwrap_or_default();
        product(x, row, out)?;
    }
    Ok(())
}

/// Fails unless there are at least `needed` words of scratch.
pub(crate) const fn check_scratch(needed: usize, found: usize) -> Result<(), LinearError> {
    if found < needed {
        return Err(LinearError::Scratch { needed, found });
    }
    Ok(())
}

/// Fails unless there is one scale per row of activations.
pub(crate) const fn check_scales(rows: usize, x_scales: &[f32]) -> Result<(), LinearError> {
    expect(rows, x_scales.len())
}
