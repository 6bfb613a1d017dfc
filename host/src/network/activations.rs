//! int8 activations in the layers, and the scales for recorded inputs.

use tercet_core::engine::QuantizeEngine;
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::quant::calibrate::{Scheme, calibrate};
use tercet_core::quant::{Grid, HOST_BITS, Histogram};

use super::{BATCH, BuildOptions};
use crate::Error;
use crate::engine::{EngineError, FlowEngine, WithFallback};
use crate::parallel::Threads;
use crate::parallel::each::{chunks, chunks_mut};
use crate::points::{Points, Values};
use crate::source::TILE;

/// int8 activations of all points, one after another.
pub(super) struct Activations {
    pub(super) codes: Vec<i8>,
    pub(super) len: usize,
    pub(super) scale: f32,
}

impl Activations {
    pub(super) fn of(points: &Points, scale: f32) -> Self {
        let (grid, values) = (symmetric(scale), points.to_f32());
        let mut codes = vec![0; values.len()];
        let tiles = chunks(&values, TILE).zip(chunks_mut(&mut codes, TILE));
        tiles.each(|_, (values, codes)| {
            for (code, &x) in codes.iter_mut().zip(values) {
                *code = grid.code(x);
            }
        });
        Self {
            codes,
            len: points.dims(),
            scale,
        }
    }

    /// Applies a layer to all points, [`BATCH`] at a time: `apply` receives their codes and their outputs.
    pub(super) fn map<T: Copy + Default>(
        &self,
        layer: &Layer<'_>,
        mut apply: impl FnMut(I8Sym<'_>, &mut [T]) -> Result<(), EngineError>,
    ) -> Result<Vec<T>, EngineError> {
        let rows = layer.weights().rows();
        let points = self.codes.len() / self.len.max(1);
        let mut out = vec![T::default(); rows * points];
        let batches = self.codes.chunks((self.len * BATCH).max(1));
        for (x, out) in batches.zip(out.chunks_mut((rows * BATCH).max(1))) {
            apply(I8Sym::new(x)?, out)?;
        }
        Ok(out)
    }
}

/// Returns the grid of a network's activations.
pub(super) const fn symmetric(scale: f32) -> Grid {
    Grid {
        scale,
        zero_point: 0,
        low: -127,
        high: 127,
    }
}

/// Returns the scale of the inputs: the requested one, that of their grid, or a calibrated one.
pub(super) fn input_scale<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    options: &BuildOptions,
    recorded: &Points,
) -> Result<f32, Error> {
    match (options.input_scale, recorded.values()) {
        (Some(scale), _) if scale > 0.0 && scale.is_finite() => Ok(scale),
        (Some(scale), _) => Err(Error::options(format!(
            "the input scale is {scale}; it must be a positive number"
        ))),
        (None, Values::I8 { grid, .. }) if grid.zero_point == 0 && grid.scale > 0.0 => {
            Ok(grid.scale)
        }
        _ => scale_of(shared, &recorded.to_f32(), options),
    }
}

/// Returns the scale of a symmetric int8 grid for these values; 1 if all are 0.
pub(super) fn scale_of<E: FlowEngine>(
    shared: &mut WithFallback<'_, E>,
    values: &[f32],
    options: &BuildOptions,
) -> Result<f32, Error> {
    let mut counts = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut counts).map_err(Error::options)?;
    let done = shared.engine.histogram(values, &mut histogram);
    // An engine without room has counted nothing.
    let again = |threads: &mut Threads| Ok(threads.histogram(values, &mut histogram)?);
    let done = shared.or_threads(done, again);
    done.map_err(|fault| shared.error(fault, |refusal| Error::options(refusal)))?;
    let found = calibrate(&histogram, options.range, Scheme::Symmetric);
    match found.map_err(Error::options)?.grid.scale {
        0.0 => Ok(1.0),
        scale => Ok(scale),
    }
}
