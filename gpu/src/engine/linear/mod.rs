//! Layers on a device: products of weight rows with rows of int8 activations, with the sums of [`tercet_core::linear`].

mod cudas;
mod engine;
mod launches;
mod packed;

use tercet_core::linear::{I8Sym, Layer, LinearError};

use self::launches::Output;
use self::packed::Packing;
use super::{Cuda, CudaError, DeviceBuffer};

pub use self::cudas::CudasLayer;

/// The bits of 128 as an f16.
const WIDE: u16 = 0x5800;

/// A layer's weights, scales and bias on a device.
///
/// ```
/// use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn product(x: &[i8]) -> Result<Vec<f32>, CudaError> {
///     let mut cuda = Cuda::first()?;
///     let weights = Matrix::new(Layout::Int8, 2, 3, &[1, 2, 3, 0xFF, 0, 1])?;
///     let layer = cuda.layer(&Layer::new(weights))?;
///     // As many products as one likes; the weights stay.
///     let x = cuda.activations(&layer, I8Sym::new(x)?)?;
///     let scales = cuda.upload(&[0.5])?;
///     let mut out = cuda.zeros::<f32>(2)?;
///     cuda.multiply(&layer, &x, &scales, &mut out)?;
///     let mut y = vec![0.0; 2];
///     cuda.read(&out, &mut y)?;
///     Ok(y)
/// }
///
/// match product(&[10, 20, 30]) {
///     Ok(y) => assert_eq!(y, [70.0, 10.0]),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct DeviceLayer {
    rows: usize,
    unit: f32,
    packing: Packing,
    weights: DeviceBuffer<u8>,
    /// Bits of an f16 per block.
    block_scales: Option<DeviceBuffer<u16>>,
    /// The minima, for formats that have them.
    mins: Option<DeviceBuffer<u16>>,
    /// True if all of those are below 128 in magnitude, so that each is a whole number of 2⁻²⁴ in 32 bits.
    narrow: bool,
    /// The scale of every row, if `row_scales` is `None`.
    scale: f32,
    row_scales: Option<DeviceBuffer<f32>>,
    bias: Option<DeviceBuffer<i64>>,
}

impl DeviceLayer {
    /// Returns the number of outputs.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inputs.
    pub const fn cols(&self) -> usize {
        self.packing.cols
    }

    /// Returns the bytes of weights and their scales, which a product reads at least once.
    pub fn weight_bytes(&self) -> usize {
        let bytes =
            |words: &Option<DeviceBuffer<u16>>| words.as_ref().map_or(0, DeviceBuffer::bytes);
        self.weights.bytes() + bytes(&self.block_scales) + bytes(&self.mins)
    }

    /// Returns the columns of a block for kernels that use scales as 32-bit integers, `Some(None)` without blocks;
    /// `None` if scales are wider.
    fn block(&self) -> Option<Option<usize>> {
        self.narrow.then_some(self.packing.block)
    }
}

/// Rows of int8 activations on a device, each padded with zeros to whole loads of the kernels.
#[derive(Debug)]
pub struct DeviceActivations {
    values: DeviceBuffer<i8>,
    count: usize,
    cols: usize,
    stride: usize,
}

impl DeviceActivations {
    /// Returns the number of rows.
    pub const fn count(&self) -> usize {
        self.count
    }
}

impl Cuda {
    /// Copies a layer to the device. The host packs its weights first, O(rows · cols).
    ///
    /// # Errors
    /// [`LinearError::CodeRange`] for a weight of 128, which [`tercet_core::linear::Layout::Int8Pairs`] can hold but
    /// kernels cannot; [`LinearError::TooLarge`]; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn layer(&mut self, layer: &Layer<'_>) -> Result<DeviceLayer, CudaError> {
        let matrix = layer.weights();
        let rows = matrix.rows();
        // Kernels number rows in 32 bits.
        if u32::try_from(rows).is_err() {
            return Err(LinearError::TooLarge.into());
        }
        let packing = Packing::of(matrix.layout(), matrix.cols());
        let packed = packed::pack(matrix)?;
        let scales: Vec<_> = (0..rows).map(|row| matrix.scale(row)).collect();
        let scale = scales.first().copied().unwrap_or(1.0);
        let one = scales
            .iter()
            .all(|other| other.to_bits() == scale.to_bits());
        let bias: Vec<_> = (0..rows).map(|row| layer.bias(row)).collect();
        let biased = bias.iter().any(|&bias| bias != 0);
        let blocks = packing.block.is_some();
        Ok(DeviceLayer {
            rows,
            unit: matrix.layout().unit(),
            packing,
            weights: self.upload(&packed.bytes)?,
            block_scales: blocks.then(|| self.upload(&packed.scales)).transpose()?,
            mins: packed.mins.map(|mins| self.upload(&mins)).transpose()?,
            narrow: packed.scales.iter().all(|bits| bits & 0x7FFF < WIDE),
            scale,
            row_scales: (!one).then(|| self.upload(&scales)).transpose()?,
            bias: biased.then(|| self.upload(&bias)).transpose()?,
        })
    }

    /// Copies rows of activations for a layer to the device. They also fit every other layer with as many inputs and
    /// bits per weight.
    ///
    /// # Errors
    /// [`LinearError::Length`] unless `x` holds whole rows; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn activations(
        &mut self,
        layer: &DeviceLayer,
        x: I8Sym<'_>,
    ) -> Result<DeviceActivations, CudaError> {
        let (cols, stride) = (layer.cols(), layer.packing.padded());
        let count = x.len() / cols;
        if count * cols != x.len() {
            let expected = count * cols;
            let found = x.len();
            return Err(LinearError::Length { expected, found }.into());
        }
        let values = if stride == cols {
            self.upload(x.get())?
        } else {
            let mut padded = vec![0; count * stride];
            for (row, out) in x.rows(cols).zip(padded.chunks_exact_mut(stride)) {
                out[..cols].copy_from_slice(row.get());
            }
            self.upload(&padded)?
        };
        Ok(DeviceActivations {
            values,
            count,
            cols,
            stride,
        })
    }

    /// Computes the exact sums of a layer with rows of activations, bias included, as [`tercet_core::linear::sums`].
    /// `out` has a row per row of activations, with a sum for each row of weights.
    ///
    /// # Errors
    /// [`LinearError::Length`] if the activations are not for this layer; [`CudaError::Length`];
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Launch`], [`CudaError::Driver`].
    pub fn row_sums(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        out: &mut DeviceBuffer<i64>,
    ) -> Result<(), CudaError> {
        self.check_product(layer, x, out.len())?;
        self.launch_product(layer, x, Output::Sums(out))
    }

    /// Multiplies a layer with rows of activations, with f32 outputs, as [`tercet_core::linear::matvec`]. `scales` has
    /// one scale per row of activations. `out` has a row per row of activations, with an output for each row of
    /// weights.
    ///
    /// # Errors
    /// As [`Cuda::row_sums`].
    pub fn multiply(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        scales: &DeviceBuffer<f32>,
        out: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        self.check_product(layer, x, out.len())?;
        scales.check(&self.pool, x.count)?;
        self.launch_product(layer, x, Output::Floats(out, scales))
    }

    /// Checks that activations and outputs fit a layer.
    fn check_product(
        &self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        outputs: usize,
    ) -> Result<(), CudaError> {
        let (expected, found) = (layer.cols(), x.cols);
        if expected != found || layer.packing.padded() != x.stride {
            return Err(LinearError::Length { expected, found }.into());
        }
        let expected = x.count.saturating_mul(layer.rows);
        if expected != outputs {
            let found = outputs;
            return Err(CudaError::Length { expected, found });
        }
        Ok(())
    }
}
