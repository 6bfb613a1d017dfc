//! Quantizing on a device: ternary, int4 and int8, per tensor, row or block.

mod activations;
mod beside;
mod cudas;
mod dequantize;
mod fp8;
mod histogram;
mod launches;
mod magnitudes;
mod output;
mod problem;
mod record;
mod stats;
mod through;

use std::ops::RangeInclusive;

use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine};
use tercet_core::number::Element;
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{self, Codes, Groups, Histogram, Method, QuantError, Report, Rule, int8};

pub use self::cudas::CudasTensor;
use self::histogram::Counted;
pub(super) use self::launches::kernel;
use self::launches::{ApplyKind, GroupRange, Results};
pub use self::problem::CudaTensor;
use super::{Cuda, CudaError, DeviceBuffer};

/// Number of values of a group that one block processes alone if there are too few groups for all multiprocessors.
const ROW: usize = 32 << 10;

/// A quantized tensor on a device: codes, a scale per group, and optionally a zero point per group.
///
/// ```
/// use tercet_core::quant::{Groups, Method};
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn quantize(weights: &[f32], rows: usize) -> Result<Vec<f32>, CudaError> {
///     let mut cuda = Cuda::first()?;
///     let weights = cuda.upload(weights)?;
///     let groups = Groups::rows(rows, weights.len() / rows)?;
///     let mut codes = cuda.codes(groups, false)?;
///     cuda.quantize(&weights, Method::Symmetric { limit: 127 }, &mut [], &mut codes)?;
///     let mut restored = cuda.zeros::<f32>(weights.len())?;
///     cuda.dequantize(&codes, &mut restored)?;
///     let mut back = vec![0.0; restored.len()];
///     cuda.read(&restored, &mut back)?;
///     Ok(back)
/// }
///
/// match quantize(&[127.0, -3.0, 0.0, 254.0], 2) {
///     Ok(back) => assert_eq!(back, [127.0, -3.0, 0.0, 254.0]),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct DeviceCodes {
    groups: Groups,
    codes: DeviceBuffer<i8>,
    scales: DeviceBuffer<f32>,
    zero_points: Option<DeviceBuffer<i8>>,
}

impl DeviceCodes {
    /// Returns the grouping of the codes.
    pub const fn groups(&self) -> Groups {
        self.groups
    }

    /// Returns one code per value.
    pub const fn codes(&self) -> &DeviceBuffer<i8> {
        &self.codes
    }

    /// Returns one scale per group.
    pub const fn scales(&self) -> &DeviceBuffer<f32> {
        &self.scales
    }

    /// Returns one zero point per group; `None` means zeros.
    pub const fn zero_points(&self) -> Option<&DeviceBuffer<i8>> {
        self.zero_points.as_ref()
    }

    const fn codes_mut(&mut self) -> &mut DeviceBuffer<i8> {
        &mut self.codes
    }

    /// Returns the targets of the kernels: codes, scales and zero points.
    const fn results<'a>(
        &'a mut self,
        report: &'a mut DeviceBuffer<u64>,
    ) -> (&'a mut DeviceBuffer<i8>, Results<'a>) {
        let results = Results {
            scales: &mut self.scales,
            zero_points: self.zero_points.as_mut(),
            report,
        };
        (&mut self.codes, results)
    }

    /// Writes scales and zero points that the host chose; empty if there were none.
    fn write(
        &mut self,
        cuda: &mut Cuda,
        scales: &[f32],
        zero_points: &[i8],
    ) -> Result<(), CudaError> {
        if scales.is_empty() {
            return Ok(());
        }
        cuda.write(scales, &mut self.scales)?;
        match &mut self.zero_points {
            Some(points) => cuda.write(zero_points, points),
            None => Ok(()),
        }
    }
}

impl QuantizeEngine for Cuda {
    type Error = CudaError;
    type Tensor<'a, T: Element> = CudaTensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<CudaTensor<'a, T>, CudaError> {
        CudaTensor::of_host(self, values, groups, out)
    }

    /// The values pass through the device in chunks; more than 2^32 − 1 values are counted in parts.
    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), CudaError> {
        let parts = self.counted(values, B)?;
        Ok(Counted::add_all(parts, histogram)?)
    }

    /// The codes pass through the device in chunks.
    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        codes.check(out.len())?;
        // Kernels accept all 256 codes.
        let outside = |code: &i8| !range.contains(code);
        let outside = match range == int8::RANGE {
            true => None,
            false => codes.codes.iter().position(outside),
        };
        match outside {
            None => self.dequantize_slices(codes, out),
            Some(index) => {
                let index = index as u64;
                Err(QuantError::CodeRange { index }.into())
            }
        }
    }

    /// The values pass through the device in chunks.
    fn quantize_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), CudaError> {
        self.quantize_fp8_slices(format, scale, values, out)
    }

    /// The codes pass through the device in chunks.
    fn dequantize_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        self.dequantize_fp8_slices(format, scale, codes, out)
    }

    /// Rows pass through the device in chunks.
    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), CudaError> {
        activations::norm_quantize(self, x, norm, out, scales)
    }
}

impl Cuda {
    /// Allocates a quantized tensor, all zeros, with or without zero points.
    ///
    /// # Errors
    /// [`QuantError::GroupLength`] if the number of codes exceeds `usize`; [`CudaError::OutOfMemory`],
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn codes(&mut self, groups: Groups, zero_points: bool) -> Result<DeviceCodes, CudaError> {
        let len = groups.values().ok_or(QuantError::GroupLength {
            len: usize::MAX,
            group_len: groups.len,
        })?;
        Ok(DeviceCodes {
            groups,
            codes: self.zeros(len)?,
            scales: self.zeros(groups.count)?,
            zero_points: zero_points.then(|| self.zeros(groups.count)).transpose()?,
        })
    }

    /// Copies a quantized tensor from the host to the device.
    ///
    /// # Errors
    /// [`QuantError::Length`] if codes, scales or zero points do not fit the groups; [`CudaError::OutOfMemory`],
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn upload_codes(&mut self, codes: &Codes<'_>) -> Result<DeviceCodes, CudaError> {
        let Codes {
            codes,
            groups,
            scales,
            zero_points,
        } = *codes;
        groups.check(codes.len())?;
        let points = !zero_points.is_empty();
        for found in [
            scales.len(),
            if points {
                zero_points.len()
            } else {
                groups.count
            },
        ] {
            let expected = groups.count;
            if found != expected {
                return Err(QuantError::Length { expected, found }.into());
            }
        }
        Ok(DeviceCodes {
            groups,
            codes: self.upload(codes)?,
            scales: self.upload(scales)?,
            zero_points: points.then(|| self.upload(zero_points)).transpose()?,
        })
    }

    /// Quantizes a tensor on the device, in the groups of `out`. As [`tercet_core::quant::quantize`], for which `bins`
    /// is scratch.
    ///
    /// # Errors
    /// Those of [`tercet_core::quant::quantize`]; [`CudaError::Length`] if a buffer belongs to another engine;
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn quantize<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        method: Method,
        bins: &mut [MagnitudeBin],
        out: &mut DeviceCodes,
    ) -> Result<Report, CudaError> {
        let mut tensor = CudaTensor::of_device(self, values, out)?;
        let report = quant::quantize(&mut tensor, method, bins)?;
        tercet_core::engine::QuantizeProblem::finish(tensor)?;
        Ok(report)
    }

    /// True if one block, or one warp, per group keeps the device busy.
    fn takes_rows(&self, groups: Groups) -> bool {
        groups.len <= ROW || groups.count >= 2 * self.multiprocessors as usize
    }

    /// Quantizes all groups by a method that the kernels support.
    fn quantize_all<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        groups: Groups,
        method: Method,
        codes: &mut DeviceBuffer<i8>,
        results: &mut Results<'_>,
    ) -> Result<(), CudaError> {
        let whole = GroupRange::whole(groups);
        if self.takes_rows(groups) {
            return self.launch_quantize(values, whole, method, codes, results);
        }
        let with_sum = matches!(
            method,
            Method::Ternary {
                rule: Rule::AbsMean | Rule::Twn,
                ..
            }
        );
        let mut stats = self.zeros(groups.count * record::STATS)?;
        let mut plans = self.room(groups.count * record::PLAN)?;
        let mut applied = self.zeros(groups.count * record::APPLIED)?;
        self.launch_stats(values, whole, with_sum, &mut stats, 0)?;
        self.launch_plan(&stats, groups, method, &mut plans, results.report)?;
        let work = (ApplyKind::of(method), &plans);
        self.launch_apply(values, whole, work, codes, &mut applied)?;
        self.launch_finish(&stats, &applied, &plans, groups, method, results)
    }

    /// Copies elements `start..start + len` of a buffer into `copied`.
    fn part<'c, T: Element>(
        &mut self,
        buffer: &DeviceBuffer<T>,
        start: usize,
        len: usize,
        copied: &'c mut Vec<T>,
    ) -> Result<&'c [T], CudaError> {
        copied.resize(len, T::default());
        self.read_at(buffer, start, copied)?;
        Ok(copied)
    }
}
