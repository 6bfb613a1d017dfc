//! Converts codes back to floats, on the device or passing through it.

use tercet_core::number::{Element, Kind};
use tercet_core::quant::{Codes, Groups};

use super::DeviceCodes;
use super::launches::kernel;
use super::through::{LEAST, chunks};
use crate::engine::{Argument, Chunks, Cuda, CudaError, DeviceBuffer, Item, LaunchGrid};

/// Number of values whose scales are on the device at a time.
const SEGMENT: usize = 256 << 20;

/// Codes on the device with the start of their scales and zero points.
struct Coded<'a> {
    codes: &'a DeviceBuffer<i8>,
    count: usize,
    group_len: usize,
    scales: Argument<'a>,
    zero_points: Argument<'a>,
}

impl Cuda {
    /// Writes `fl((code − zero point) · scale)`, rounded further to the element type of `out` if that is a half. All
    /// data stays on the device.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless `out` holds as many values and belongs to this engine; [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn dequantize<T: Element>(
        &mut self,
        codes: &DeviceCodes,
        out: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        let count = codes.codes.len();
        out.check(&self.pool, count)?;
        let coded = Coded {
            codes: &codes.codes,
            count,
            group_len: codes.groups.len,
            scales: (&codes.scales).into(),
            zero_points: codes.zero_points.as_ref().into(),
        };
        self.launch_dequantize(&coded, out)
    }

    /// As [`Cuda::dequantize`], for codes on the host, in slices of any length: they pass through the device in chunks,
    /// and copies in, copies out and kernels run at the same time. All 256 codes are accepted.
    ///
    /// # Errors
    /// Those of [`Codes::check`]; [`CudaError::OutOfMemory`] if there is no room even for twice 16,384 values;
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn dequantize_slices<T: Element>(
        &mut self,
        codes: Codes<'_>,
        out: &mut [T],
    ) -> Result<(), CudaError> {
        codes.check(out.len())?;
        let Groups { count, len } = codes.groups;
        if len > LEAST {
            // Process parts of one group after another.
            let groups = codes.codes.chunks_exact(len).zip(out.chunks_exact_mut(len));
            for (group, (values, out)) in groups.enumerate() {
                let scales = &codes.scales[group..=group];
                let zero_points = codes.zero_points.get(group..=group).unwrap_or_default();
                let item = Item {
                    input: 1,
                    output: 1,
                };
                self.restore(values, (len, item), scales, zero_points, out)?;
            }
            return Ok(());
        }
        let segments = Chunks {
            most: (SEGMENT / len).max(1),
            least: chunks(len).least,
        };
        self.in_chunks(count, segments, |cuda, groups| {
            let among = groups.start * len..groups.end * len;
            let zero_points = codes.zero_points.get(groups.clone()).unwrap_or_default();
            let item = Item {
                input: len,
                output: len,
            };
            let scales = &codes.scales[groups];
            let values = &codes.codes[among.clone()];
            cuda.restore(values, (len, item), scales, zero_points, &mut out[among])
        })
    }

    /// Passes codes through the device in items of whole groups, or of single values if they are of one group.
    fn restore<T: Element>(
        &mut self,
        codes: &[i8],
        (group_len, item): (usize, Item),
        scales: &[f32],
        zero_points: &[i8],
        out: &mut [T],
    ) -> Result<(), CudaError> {
        let scales = self.upload(scales)?;
        let points = !zero_points.is_empty();
        let zero_points = points.then(|| self.upload(zero_points)).transpose()?;
        let chunks = chunks(item.input);
        self.stream_through(chunks, item, codes, out, |cuda, range, codes, out| {
            let first = range.start * item.input / group_len;
            let coded = Coded {
                codes,
                count: range.len() * item.input,
                group_len,
                scales: scales.at(first),
                zero_points: match &zero_points {
                    Some(points) => points.at(first),
                    None => Argument::none(),
                },
            };
            cuda.launch_dequantize(&coded, out)
        })
    }

    fn launch_dequantize<T: Element>(
        &mut self,
        coded: &Coded<'_>,
        out: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        // A warp processes 256 codes at a time.
        let grid = LaunchGrid::strided(coded.count, 8 * 256, 256, self.most_blocks());
        let arguments = [
            Argument::from(coded.codes),
            coded.count.into(),
            coded.group_len.into(),
            coded.scales,
            coded.zero_points,
            out.into(),
        ];
        // SAFETY: there is a value for each code, and a scale and a zero point for each group of them; `out` is
        // borrowed alone.
        unsafe { self.launch("dequantize", kernel!("dequantize", T), grid, &arguments) }
    }

    /// Returns the index of the first code outside `low..=high`, if there is one.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn first_outside(
        &mut self,
        codes: &DeviceBuffer<i8>,
        low: i8,
        high: i8,
    ) -> Result<Option<usize>, CudaError> {
        let mut found = self.zeros::<u64>(1)?;
        let grid = LaunchGrid::strided(codes.len(), 256 * 16, 256, self.most_blocks());
        let arguments = [
            Argument::from(codes),
            codes.len().into(),
            i32::from(low).into(),
            i32::from(high).into(),
            (&mut found).into(),
        ];
        // SAFETY: the codes are as many as the kernel is told, and begin at a multiple of 16 bytes.
        unsafe { self.launch("dequantize", "codes_outside", grid, &arguments) }?;
        let mut not_outside = [0];
        self.read(&found, &mut not_outside)?;
        let [not_outside] = not_outside;
        // It fits `usize`, because it is an index.
        Ok((not_outside != 0).then_some(!not_outside as usize))
    }
}
