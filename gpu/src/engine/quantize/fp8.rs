//! Eight-bit floats on a device, with the bits of [`tercet_core::quant::fp8`].

use tercet_core::engine::Refused;
use tercet_core::number::{Element, Kind};
use tercet_core::quant::QuantError;
use tercet_core::quant::fp8::Fp8;

use super::launches::kernel;
use crate::engine::{Argument, Chunks, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Values on the device at a time.
const CHUNKS: Chunks = Chunks {
    most: 256 << 20,
    least: 1 << 14,
};

/// Checks that there is one element for each.
fn check(expected: usize, found: usize) -> Result<(), QuantError> {
    if expected != found {
        return Err(QuantError::Length { expected, found });
    }
    Ok(())
}

impl Cuda {
    /// Does [`Fp8::quantize`] on the device: writes the saturating codes of `fl(x / scale)`; all 0 if the scale is not
    /// positive and finite. O(n), one pass.
    ///
    /// ```
    /// use tercet_core::quant::fp8::Fp8;
    /// use tercet_gpu::engine::{Cuda, CudaError};
    ///
    /// fn restored(values: &[f32]) -> Result<Vec<f32>, CudaError> {
    ///     let mut cuda = Cuda::first()?;
    ///     let resident = cuda.upload(values)?;
    ///     let scale = Fp8::E4M3.scale(cuda.extremes(&resident)?.abs_max());
    ///     let mut codes = cuda.zeros::<u8>(values.len())?;
    ///     cuda.quantize_resident_fp8(Fp8::E4M3, scale, &resident, &mut codes)?;
    ///     let mut floats = cuda.zeros::<f32>(values.len())?;
    ///     cuda.dequantize_resident_fp8(Fp8::E4M3, scale, &codes, &mut floats)?;
    ///     let mut back = vec![0.0; values.len()];
    ///     cuda.read(&floats, &mut back)?;
    ///     Ok(back)
    /// }
    ///
    /// match restored(&[0.5, -1.0, 2.0, 0.0]) {
    ///     Ok(back) => assert_eq!(back, [0.5, -1.0, 2.0, 0.0]),
    ///     Err(error) => println!("not on a GPU: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`QuantError::NotFinite`] at the first value that is not finite; the content of `out` is then unspecified.
    /// [`CudaError::Length`] unless `out` holds as many codes and both buffers belong to this engine;
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn quantize_resident_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &DeviceBuffer<T>,
        out: &mut DeviceBuffer<u8>,
    ) -> Result<(), CudaError> {
        let count = values.len();
        values.check(&self.pool, count)?;
        out.check(&self.pool, count)?;
        let mut not_bad = self.zeros::<u64>(1)?;
        let name = match format {
            Fp8::E4M3 => kernel!("fp8_quantize_e4m3", T),
            Fp8::E5M2 => kernel!("fp8_quantize_e5m2", T),
        };
        // A thread processes 16 values at a time.
        let most = self.resident_blocks("fp8", name, 256, 0)?;
        let grid = LaunchGrid::strided(count, 256 * 16, 256, most);
        let arguments = [
            Argument::from(values),
            count.into(),
            scale.into(),
            out.into(),
            (&mut not_bad).into(),
        ];
        // SAFETY: there is a code for each value, which were written and begin at a multiple of 16 bytes; `out` is
        // borrowed alone.
        unsafe { self.launch("fp8", name, grid, &arguments) }?;
        let mut found = [0];
        self.read(&not_bad, &mut found)?;
        match found {
            [0] => Ok(()),
            [not_bad] => Err(QuantError::NotFinite { index: !not_bad }.into()),
        }
    }

    /// As [`Cuda::quantize_resident_fp8`], for values on the host.
    pub(super) fn quantize_fp8_slices<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), CudaError> {
        check(values.len(), out.len())?;
        self.in_chunks(values.len(), CHUNKS, |cuda, range| {
            let there = cuda.upload(&values[range.clone()])?;
            let mut codes = cuda.zeros(range.len())?;
            let done = cuda.quantize_resident_fp8(format, scale, &there, &mut codes);
            done.map_err(|error| match error {
                CudaError::Refused(Refused::Quantize(QuantError::NotFinite { index })) => {
                    let index = index + range.start as u64;
                    QuantError::NotFinite { index }.into()
                }
                other => other,
            })?;
            cuda.read(&codes, &mut out[range])
        })
    }

    /// As [`Cuda::dequantize_resident_fp8`], for codes on the host.
    pub(super) fn dequantize_fp8_slices(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        check(codes.len(), out.len())?;
        self.in_chunks(codes.len(), CHUNKS, |cuda, range| {
            let there = cuda.upload(&codes[range.clone()])?;
            let mut values = cuda.zeros(range.len())?;
            cuda.dequantize_resident_fp8(format, scale, &there, &mut values)?;
            cuda.read(&values, &mut out[range])
        })
    }

    /// Does [`Fp8::dequantize`] on the device: writes `fl(decode(code) · scale)`. O(n).
    ///
    /// # Errors
    /// [`CudaError::Length`] unless `out` holds as many floats and both buffers belong to this engine;
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn dequantize_resident_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &DeviceBuffer<u8>,
        out: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        let count = codes.len();
        codes.check(&self.pool, count)?;
        out.check(&self.pool, count)?;
        let name = match format {
            Fp8::E4M3 => "fp8_dequantize_e4m3",
            Fp8::E5M2 => "fp8_dequantize_e5m2",
        };
        let most = self.resident_blocks("fp8", name, 256, 0)?;
        let grid = LaunchGrid::strided(count, 256 * 4, 256, most);
        let arguments = [
            Argument::from(codes),
            count.into(),
            scale.into(),
            out.into(),
        ];
        // SAFETY: there is a float for each code, which were written; `out` is borrowed alone.
        unsafe { self.launch("fp8", name, grid, &arguments) }
    }
}
