//! Layers on several devices: each device has some rows of weights, and all rows of activations.

use std::ops::Range;

use tercet_core::linear::{I8Sym, Layer, LinearError, Matrix};

use super::engine::{BareSums, GROUP};
use super::{DeviceActivations, DeviceLayer};
use crate::engine::{Cuda, CudaError, Cudas};

/// A layer over several devices, each of which keeps some rows of weights with their scales and bias.
///
/// ```
/// use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
/// use tercet_gpu::engine::{CudaError, Cudas};
///
/// fn product(x: &[i8]) -> Result<[f32; 2], CudaError> {
///     let mut cudas = Cudas::all()?;
///     let weights = Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?;
///     let layer = cudas.layer(&Layer::new(weights))?;
///     // As many products as one likes; the weights stay.
///     let mut y = [0.0; 2];
///     cudas.multiply(&layer, I8Sym::new(x)?, &[0.5], &mut y)?;
///     Ok(y)
/// }
///
/// match product(&[10, 20, 30]) {
///     Ok(y) => assert_eq!(y, [70.0, 10.0]),
///     Err(error) => println!("not on GPUs: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct CudasLayer {
    /// The range of rows of each device.
    parts: Vec<(Range<usize>, DeviceLayer)>,
    rows: usize,
    cols: usize,
}

impl CudasLayer {
    /// Returns the number of outputs.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inputs.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of devices that have rows: the first ones of the engine.
    pub const fn devices(&self) -> usize {
        self.parts.len()
    }
}

impl Cudas {
    /// Copies a layer to the devices, to each its share of the rows. O(rows · cols), once.
    ///
    /// # Errors
    /// [`LinearError::CodeRange`], [`LinearError::LeftOut`], [`LinearError::TooLarge`] as [`Cuda::layer`];
    /// [`CudaError::OnDevice`] with [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn layer(&mut self, layer: &Layer<'_>) -> Result<CudasLayer, CudaError> {
        let (rows, cols) = (layer.weights().rows(), layer.weights().cols());
        let shares = self.shares(rows, GROUP, cols);
        let parts = self.each(shares, |cuda, range| {
            let part = layer.part(range.start, range.len());
            let part = cuda.layer(&part.ok_or(LinearError::TooLarge)?)?;
            Ok((range, part))
        })?;
        Ok(CudasLayer { parts, rows, cols })
    }

    /// Computes the exact sums of a layer with rows of activations, bias included, as [`tercet_core::linear::sums`].
    /// `out` has a row per row of activations, with a sum for each row of weights. Activations are copied to every
    /// device.
    ///
    /// # Errors
    /// [`LinearError::Length`] unless `x` holds whole rows of [`CudasLayer::cols`] and `out` has [`CudasLayer::rows`]
    /// for each of them; [`CudaError::OnDevice`] with [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Launch`], [`CudaError::Driver`], and with [`CudaError::Argument`] for a layer of another engine.
    pub fn row_sums(
        &mut self,
        layer: &CudasLayer,
        x: I8Sym<'_>,
        out: &mut [i64],
    ) -> Result<(), CudaError> {
        self.product(layer, x, out, |cuda, layer, x, len| {
            let mut there = cuda.room(len)?;
            cuda.row_sums(layer, x, &mut there)?;
            let mut sums = vec![0; len];
            cuda.read(&there, &mut sums)?;
            Ok(sums)
        })
    }

    /// Multiplies a layer with rows of activations, with f32 outputs, as [`tercet_core::linear::matvec`]. `scales` has
    /// one scale per row of activations, and `out` has a row for each of them. Activations are copied to every device.
    ///
    /// # Errors
    /// As [`Cudas::row_sums`]; [`LinearError::Length`] unless there is a scale for each row of `x`.
    pub fn multiply(
        &mut self,
        layer: &CudasLayer,
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        expect(x.len() / layer.cols, scales.len())?;
        self.product(layer, x, out, |cuda, layer, x, len| {
            let scales = cuda.upload(scales)?;
            let mut there = cuda.room(len)?;
            cuda.multiply(layer, x, &scales, &mut there)?;
            let mut floats = vec![0.0; len];
            cuda.read(&there, &mut floats)?;
            Ok(floats)
        })
    }

    /// Lets each device multiply its rows of weights with all activations, and puts the results in place.
    fn product<T: Copy + Send>(
        &mut self,
        layer: &CudasLayer,
        x: I8Sym<'_>,
        out: &mut [T],
        work: impl Fn(&mut Cuda, &DeviceLayer, &DeviceActivations, usize) -> Result<Vec<T>, CudaError>
        + Sync,
    ) -> Result<(), CudaError> {
        let count = x.len() / layer.cols;
        expect(count * layer.cols, x.len())?;
        expect(count * layer.rows, out.len())?;
        let (expected, found) = (layer.parts.len(), self.devices.len());
        if expected > found {
            return Err(CudaError::Length { expected, found });
        }
        let parts = self.each(&layer.parts, |cuda, (range, part)| {
            let x = cuda.activations(part, x)?;
            work(cuda, part, &x, range.len() * count)
        })?;
        let ranges = layer.parts.iter().map(|(range, _)| range);
        for (range, part) in ranges.zip(parts) {
            spread(&part, range, out, layer.rows);
        }
        Ok(())
    }
}

const fn expect(expected: usize, found: usize) -> Result<(), LinearError> {
    if expected == found {
        Ok(())
    } else {
        Err(LinearError::Length { expected, found })
    }
}

/// Copies a device's results for its rows of weights into rows of `all`.
fn spread<T: Copy>(part: &[T], range: &Range<usize>, all: &mut [T], rows: usize) {
    let parts = part.chunks_exact(range.len().max(1));
    for (part, all) in parts.zip(all.chunks_mut(rows.max(1))) {
        all[range.clone()].copy_from_slice(part);
    }
}

impl BareSums for Cudas {
    fn bare_sums(
        &mut self,
        matrix: &Matrix<'_>,
        x: I8Sym<'_>,
    ) -> Result<Option<Vec<i64>>, CudaError> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let shares = self.shares(rows, GROUP, cols);
        let parts = self.each(shares.clone(), |cuda, range| {
            let part = matrix.part(range.start, range.len());
            cuda.bare_sums(&part.ok_or(LinearError::TooLarge)?, x)
        })?;
        let mut all = vec![0; rows * (x.len() / cols)];
        for (range, part) in shares.into_iter().zip(parts) {
            let Some(part) = part else { return Ok(None) };
            spread(&part, &range, &mut all, rows);
        }
        Ok(Some(all))
    }
}
