//! Products of layers with activations in f32.

use tercet_core::engine::{LinearEngine, Output, QuantizeEngine};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::quant::{Groups, Method, QuantError};
use thiserror::Error;

use crate::parallel::Threads;

/// Reasons why a product fails.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ProductError {
    /// Activations that cannot be quantized, their indices counted from the first row's start.
    #[error("activations: {0}")]
    Quantize(#[from] QuantError),
    /// Lengths that do not fit the layer.
    #[error("layer: {0}")]
    Linear(#[from] LinearError),
}

/// Multiplies a layer by rows of activations. `x` holds the rows one after another. `out` gets one row for each of
/// them, with one output per row of weights.
///
/// Each row of activations is quantized to int8 by its own largest magnitude (`scale = max|x| / 127`, codes rounded
/// half to even). [`LinearEngine::matmat`] then computes the product: an exact sum, rounded once, times the scales. The
/// result does not depend on the backend or the number of threads. O(rows of `x` · rows · cols); allocates a byte per
/// activation and the memory of tiles.
///
/// ```
/// use tercet_core::linear::{Layer, Layout, Matrix};
/// use tercet_host::linear::matmat;
/// use tercet_host::parallel::Threads;
///
/// let layer = Layer::new(Matrix::new(Layout::Int8, 1, 2, &[1, 0xFF])?);
/// let mut out = [0.0; 2];
/// matmat(&mut Threads::default(), &layer, &[127.0, 27.0, 0.0, -127.0], &mut out)?;
/// assert_eq!(out, [100.0, 127.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ProductError::Quantize`] for a NaN or an infinity; [`ProductError::Linear`] for lengths that do not fit.
pub fn matmat(
    threads: &mut Threads,
    layer: &Layer<'_>,
    x: &[f32],
    out: &mut [f32],
) -> Result<(), ProductError> {
    let cols = layer.weights().cols();
    let count = x.len() / cols;
    let mut codes = vec![0; x.len()];
    // Checks the lengths first, with activations of 0.
    layer.check_many(I8Sym::new(&codes)?, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let mut scales = vec![0.0; count];
    let groups = Groups { count, len: cols };
    let quantized = Output {
        codes: &mut codes,
        scales: &mut scales,
        zero_points: &mut [],
    };
    let tensor = threads.tensor(x, groups, quantized)?;
    tensor.quantize(Method::Symmetric { limit: 127 })?;
    threads.matmat(layer, I8Sym::new(&codes)?, &scales, out, &mut [])?;
    Ok(())
}
