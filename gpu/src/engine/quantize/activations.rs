//! Activations normalized and quantized on a device, with the bits of [`tercet_core::quant::activations`].

use tercet_core::quant::activations::{self, Activations, Code, Norm};

use crate::engine::cudas::{at_once, cut};
use crate::engine::{Argument, Chunks, Cuda, CudaError, Cudas, DeviceBuffer, Grid};

/// Values that are on the device at a time.
const VALUES: usize = 64 << 20;

/// The kernel of a type of codes.
trait Kernel: Code {
    const NAME: &'static str;
}

impl Kernel for i8 {
    const NAME: &'static str = "activations_a8";
}

impl Kernel for i16 {
    const NAME: &'static str = "activations_a16";
}

impl Cuda {
    /// As [`tercet_core::engine::QuantizeEngine::norm_quantize`]: rows pass through the device in chunks.
    pub(super) fn norm_quantize_slices(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        let cols = activations::columns(x, norm, out.len(), scales.len())?;
        match out {
            Activations::A8(codes) => self.norm_rows((x, cols), norm, codes, scales)?,
            Activations::A16(codes) => self.norm_rows((x, cols), norm, codes, scales)?,
        }
        Ok(activations::finite(scales)?)
    }

    /// Rows of `cols` values, with a scale for each.
    fn norm_rows<C: Kernel>(
        &mut self,
        (x, cols): (&[f32], usize),
        norm: Option<Norm<'_>>,
        codes: &mut [C],
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        let gains = norm.filter(|_| cols != 0);
        let gains = gains.map(|norm| self.upload(norm.gains)).transpose()?;
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
            cuda.launch_norm(
                &there,
                cols,
                gains.as_ref(),
                eps,
                &mut room,
                &mut scales_there,
            )?;
            cuda.read(&room, &mut codes[values])?;
            cuda.read(&scales_there, &mut scales[rows])
        })
    }

    fn launch_norm<C: Kernel>(
        &mut self,
        x: &DeviceBuffer<f32>,
        cols: usize,
        gains: Option<&DeviceBuffer<f32>>,
        eps: f32,
        codes: &mut DeviceBuffer<C>,
        scales: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        let rows = scales.len();
        let arguments = [
            Argument::from(x),
            rows.into(),
            cols.into(),
            gains.into(),
            eps.into(),
            codes.into(),
            scales.into(),
        ];
        let grid = Grid::strided(rows, 1, 256, self.most_blocks());
        // SAFETY: there are so many rows of values and codes, a scale for each, and a gain for each column where there are gains; what is
        // written is borrowed alone.
        unsafe { self.launch("activations", C::NAME, grid, &arguments) }
    }
}

impl Cudas {
    /// As [`tercet_core::engine::QuantizeEngine::norm_quantize`]: each device has a share of the rows.
    pub(super) fn norm_quantize_slices(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        let cols = activations::columns(x, norm, out.len(), scales.len())?;
        match out {
            Activations::A8(codes) => self.norm_rows((x, cols), norm, codes, scales)?,
            Activations::A16(codes) => self.norm_rows((x, cols), norm, codes, scales)?,
        }
        Ok(activations::finite(scales)?)
    }

    fn norm_rows<C: Kernel>(
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
