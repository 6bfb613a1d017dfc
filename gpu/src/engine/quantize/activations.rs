//! Activations normalized and quantized on a device, with the bits of [`tercet_core::quant::activations`].

use tercet_core::number::Kind;
use tercet_core::quant::activations::{self, Activations, Code, Norm};

use crate::engine::cudas::{at_once, cut};
use crate::engine::{Argument, Chunks, Cuda, CudaError, Cudas, DeviceBuffer, LaunchGrid};

/// Values on the device at a time.
const VALUES: usize = 64 << 20;

/// Normalizes and quantizes checked rows, for either type of codes.
pub(super) trait NormRows {
    /// Processes rows of `cols` values, with a scale for each: NaN if a value is not finite.
    fn norm_rows<C: Code>(
        &mut self,
        x: (&[f32], usize),
        norm: Option<Norm<'_>>,
        codes: &mut [C],
        scales: &mut [f32],
    ) -> Result<(), CudaError>;
}

/// As [`tercet_core::engine::QuantizeEngine::norm_quantize`].
pub(super) fn norm_quantize(
    engine: &mut impl NormRows,
    x: &[f32],
    norm: Option<Norm<'_>>,
    out: Activations<'_>,
    scales: &mut [f32],
) -> Result<(), CudaError> {
    let cols = activations::columns(x, norm, out.len(), scales.len())?;
    match out {
        Activations::A8(codes) => engine.norm_rows((x, cols), norm, codes, scales)?,
        Activations::A16(codes) => engine.norm_rows((x, cols), norm, codes, scales)?,
    }
    Ok(activations::finite(scales)?)
}

impl Cuda {
    /// Does [`activations::quantize`] on the device; the number of rows is that of the scales. `norm` is a gain per
    /// column and a number that is added to the mean of squares. O(n), one launch.
    ///
    /// A row that is not finite gets codes 0 and the scale NaN; this is not an error.
    ///
    /// ```
    /// use tercet_gpu::engine::{Cuda, CudaError};
    ///
    /// fn quantized(rows: &[f32], gains: &[f32]) -> Result<(Vec<i8>, Vec<f32>), CudaError> {
    ///     let mut cuda = Cuda::first()?;
    ///     let (x, there) = (cuda.upload(rows)?, cuda.upload(gains)?);
    ///     let mut codes = cuda.zeros::<i8>(x.len())?;
    ///     let mut scales = cuda.zeros(x.len() / gains.len())?;
    ///     cuda.norm_quantize_resident(&x, Some((&there, 0.0)), &mut codes, &mut scales)?;
    ///     let (mut read, mut factors) = (vec![0; codes.len()], vec![0.0; scales.len()]);
    ///     cuda.read(&codes, &mut read)?;
    ///     cuda.read(&scales, &mut factors)?;
    ///     Ok((read, factors))
    /// }
    ///
    /// match quantized(&[3.0, 4.0, -1.0, 0.0], &[1.0, 2.0]) {
    ///     Ok((codes, _)) => assert_eq!(codes, [48, 127, -127, 0]),
    ///     Err(error) => println!("not on a GPU: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`CudaError::Length`] unless the values divide into the rows, with a code for each and a gain for each column,
    /// all in buffers of this engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn norm_quantize_resident<C: Code>(
        &mut self,
        x: &DeviceBuffer<f32>,
        norm: Option<(&DeviceBuffer<f32>, f32)>,
        codes: &mut DeviceBuffer<C>,
        scales: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        let rows = scales.len();
        let cols = x.len().checked_div(rows).unwrap_or(0);
        scales.check(&self.pool, rows)?;
        x.check(&self.pool, rows * cols)?;
        codes.check(&self.pool, rows * cols)?;
        if let Some((gains, _)) = norm {
            gains.check(&self.pool, cols)?;
        }
        let kernel = match C::KIND {
            Kind::I8 => "activations_a8",
            _ => "activations_a16",
        };
        let arguments = [
            Argument::from(x),
            rows.into(),
            cols.into(),
            norm.map(|(gains, _)| gains).into(),
            norm.map_or(0.0, |(_, eps)| eps).into(),
            codes.into(),
            scales.into(),
        ];
        let most = self.resident_blocks("activations", kernel, 256, 0)?;
        let grid = LaunchGrid::strided(rows, 1, 256, most);
        // SAFETY: there are so many rows of values and codes, a scale for each, and a gain for each column if there are
        // gains; what is written is borrowed alone.
        unsafe { self.launch("activations", kernel, grid, &arguments) }
    }
}

impl NormRows for Cuda {
    /// Rows pass through the device in chunks.
    fn norm_rows<C: Code>(
        &mut self,
        (x, cols): (&[f32], usize),
        norm: Option<Norm<'_>>,
        codes: &mut [C],
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        let norm = norm.filter(|_| cols != 0);
        let gains = norm.map(|norm| self.upload(norm.gains)).transpose()?;
        let eps = norm.map_or(0.0, |norm| norm.eps);
        let chunks = Chunks {
            most: (VALUES / cols.max(1)).max(1),
            least: 1,
        };
        self.in_chunks(scales.len(), chunks, |cuda, rows| {
            let values = rows.start * cols..rows.end * cols;
            let there = cuda.upload(&x[values.clone()])?;
            let mut room = cuda.room::<C>(values.len())?;
            let mut scales_there = cuda.room(rows.len())?;
            let norm = gains.as_ref().map(|gains| (gains, eps));
            cuda.norm_quantize_resident(&there, norm, &mut room, &mut scales_there)?;
            cuda.read(&room, &mut codes[values])?;
            cuda.read(&scales_there, &mut scales[rows])
        })
    }
}

impl NormRows for Cudas {
    /// Each device has a share of the rows.
    fn norm_rows<C: Code>(
        &mut self,
        (x, cols): (&[f32], usize),
        norm: Option<Norm<'_>>,
        codes: &mut [C],
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        let shares = self.shares(scales.len(), 1, cols);
        let codes = cut(codes, shares.iter().map(|rows| rows.len() * cols));
        let scales = cut(scales, shares.iter().map(|rows| rows.len()));
        let devices = self.devices.iter_mut().zip(shares);
        at_once(
            devices.zip(codes.into_iter().zip(scales)),
            |((cuda, rows), (codes, scales))| {
                let x = &x[rows.start * cols..rows.end * cols];
                let done = cuda.norm_rows((x, cols), norm, codes, scales);
                cuda.named(done)
            },
        )?;
        Ok(())
    }
}
