//! Many rows of activations, one by one.

use super::{I8Sym, Layer, LinearError, expect};

/// Calls `product` with each row of activations, its number, its outputs and scratch.
pub(crate) fn rows<T, E: From<LinearError>>(
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    out: &mut [T],
    scratch: &mut [u32],
    mut product: impl FnMut(I8Sym<'_>, usize, &mut [T], &mut [u32]) -> Result<(), E>,
) -> Result<(), E> {
    layer.check_many(x, out.len(), scratch.len())?;
    let mut out = out.chunks_exact_mut(layer.weights().rows().max(1));
    for (row, x) in x.rows(layer.weights().cols()).enumerate() {
        // A matrix without rows has no outputs.
        let out = out.next().unwrap_or_default();
        product(x, row, out, scratch)?;
    }
    Ok(())
}

/// One scale a row of activations.
pub(crate) const fn check_scales(rows: usize, x_scales: &[f32]) -> Result<(), LinearError> {
    expect(rows, x_scales.len())
}
