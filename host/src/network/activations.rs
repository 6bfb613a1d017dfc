//! int8 activations on their way through the layers, and the scales that recorded inputs ask for.

use rayon::prelude::*;
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::quant::calibrate::{Scheme, calibrate};
use tercet_core::quant::{Grid, HOST_BITS, Histogram};

use super::BuildOptions;
use crate::Error;
use crate::parallel::Threads;
use crate::points::{Points, Values};

/// int8 activations of all points, one after the other.
pub(super) struct Activations {
    pub(super) codes: Vec<i8>,
    pub(super) len: usize,
    pub(super) scale: f32,
}

impl Activations {
    pub(super) fn of(points: &Points, scale: f32) -> Self {
        let grid = symmetric(scale);
        Self {
            codes: points.to_f32().iter().map(|&x| grid.code(x)).collect(),
            len: points.dims(),
            scale,
        }
    }

    /// Applies a layer to every point, on all threads.
    pub(super) fn map<T: Copy + Default + Send>(
        &self,
        layer: &Layer<'_>,
        apply: impl Fn(I8Sym<'_>, &mut [T], &mut [u32]) -> Result<(), LinearError> + Sync,
    ) -> Result<Vec<T>, LinearError> {
        let rows = layer.weights().rows();
        let points = self.codes.len() / self.len.max(1);
        let mut out = vec![T::default(); rows * points];
        out.par_chunks_mut(rows)
            .zip(self.codes.par_chunks(self.len))
            .try_for_each_init(
                || vec![0; layer.weights().scratch_len()],
                |scratch, (out, x)| apply(I8Sym::new(x)?, out, scratch),
            )?;
        Ok(out)
    }
}

const fn symmetric(scale: f32) -> Grid {
    Grid {
        scale,
        zero_point: 0,
        low: -127,
        high: 127,
    }
}

/// The scale of the inputs: the one asked for, that of a grid they lie on, or a calibrated one.
pub(super) fn input_scale(options: &BuildOptions, recorded: &Points) -> Result<f32, Error> {
    match (options.input_scale, recorded.values()) {
        (Some(scale), _) if scale > 0.0 && scale.is_finite() => Ok(scale),
        (Some(scale), _) => Err(Error::options(format!(
            "an input scale of {scale}; it must be a positive number"
        ))),
        (None, Values::I8 { grid, .. }) if grid.zero_point == 0 && grid.scale > 0.0 => {
            Ok(grid.scale)
        }
        _ => scale_of(&recorded.to_f32(), options),
    }
}

/// The scale of a symmetric int8 grid for these values; 1 where all are 0.
pub(super) fn scale_of(values: &[f32], options: &BuildOptions) -> Result<f32, Error> {
    let mut counts = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut histogram = Histogram::<HOST_BITS>::new(&mut counts).map_err(Error::options)?;
    Threads::default()
        .histogram(values, &mut histogram)
        .map_err(Error::options)?;
    let found = calibrate(&histogram, options.method.core()?, Scheme::Symmetric);
    match found.map_err(Error::options)?.grid.scale {
        0.0 => Ok(1.0),
        scale => Ok(scale),
    }
}
