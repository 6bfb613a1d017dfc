//! Launches of the block kernels, and their results.

use tercet_core::block::{BlockError, Encoded, Format};
use tercet_core::number::{Element, Kind};
use tercet_core::quant::{Rule, ScaleRule};

use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Number of values whose blocks a block of threads reads at a time: its warps take turns of four stripes of 128.
const READ: usize = 8 * 4 * 128;
/// Number of values whose blocks it encodes at a time: its warps take turns of four shares of 256.
const MADE: usize = 8 * 4 * 256;
/// Words of an `EncodeRecord` and of a `DotRecord` (`kernels/cuda/block_encode.cu`, `block_dot.cu`).
pub(super) const RECORD: usize = 3;

/// Returns the name of a kernel for a format.
macro_rules! by_format {
    ($format:expr, $name:literal, $suffix:literal) => {
        match $format {
            Format::Tq1_0 => concat!($name, "_tq1_0", $suffix),
            Format::Tq2_0 => concat!($name, "_tq2_0", $suffix),
            Format::Q2_0 => concat!($name, "_q2_0", $suffix),
            Format::Q8_0 => concat!($name, "_q8_0", $suffix),
            Format::Q4_0 => concat!($name, "_q4_0", $suffix),
            Format::Q4_1 => concat!($name, "_q4_1", $suffix),
            Format::Q5_0 => concat!($name, "_q5_0", $suffix),
            Format::Q5_1 => concat!($name, "_q5_1", $suffix),
            Format::Q4K => concat!($name, "_q4_k", $suffix),
            Format::Q6K => concat!($name, "_q6_k", $suffix),
        }
    };
}

/// The values `before..before + count` of a tensor, which are at the start of the buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockRange {
    before: usize,
    count: usize,
}

impl BlockRange {
    /// Returns the part of the blocks `first..first + count`.
    pub(super) const fn of_blocks(format: Format, blocks: &std::ops::Range<usize>) -> Self {
        Self {
            before: blocks.start * format.len(),
            count: (blocks.end - blocks.start) * format.len(),
        }
    }

    pub(super) const fn whole(count: usize) -> Self {
        Self { before: 0, count }
    }

    /// Returns the number of thread blocks that process these values, `each` at a time.
    fn shared_out(
        self,
        cuda: &mut Cuda,
        module: &'static str,
        kernel: &'static str,
        each: usize,
    ) -> Result<LaunchGrid, CudaError> {
        let most = cuda.resident_blocks(module, kernel, 256, 0)?;
        Ok(LaunchGrid::strided(self.count, each, 256, most))
    }

    /// Checks that buffers hold these values and their bytes.
    fn check(self, format: Format, values: usize, bytes: usize) -> Result<(), CudaError> {
        for (expected, found) in [
            (self.count, values),
            (format.encoded_len(self.count)?, bytes),
        ] {
            if found < expected {
                return Err(CudaError::Length { expected, found });
            }
        }
        Ok(())
    }
}

/// Decodes an index that a kernel wrote as its complement, so that 0 means none.
fn index(complement: u64) -> Option<usize> {
    // It fits `usize`, because it is an index.
    (complement != 0).then_some(!complement as usize)
}

/// Returns the block that `name_not_finite` names (`kernels/include/tercet/blocks.cuh`), and true if its minimum is not
/// finite instead of its scale.
fn named_block(complement: u64) -> Option<(usize, bool)> {
    index(complement).map(|twice| (twice / 2, twice % 2 == 1))
}

/// Checks a kernel's result about the scale or minimum of blocks.
fn check_finite(complement: u64) -> Result<(), CudaError> {
    match named_block(complement) {
        Some((block, false)) => Err(BlockError::ScaleNotFinite { block }.into()),
        Some((block, true)) => Err(BlockError::MinNotFinite { block }.into()),
        None => Ok(()),
    }
}

impl Cuda {
    pub(super) fn launch_encode<T: Element>(
        &mut self,
        format: Format,
        (rule, scale): (Rule, ScaleRule),
        values: &DeviceBuffer<T>,
        part: BlockRange,
        bytes: &mut DeviceBuffer<u8>,
        record: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        part.check(format, values.len(), bytes.len())?;
        let kernel = match (rule, scale) {
            (Rule::AbsMax, ScaleRule::Rule) => by_format!(format, "block_encode", ""),
            // Only for ternary formats.
            (Rule::Optimal, _) => by_format!(format, "block_encode_best", ""),
            _ => by_format!(format, "block_encode_means", ""),
        };
        let rule = match rule {
            Rule::AbsMax => 0u32,
            Rule::AbsMean => 1,
            Rule::Twn => 2,
            Rule::Optimal => 3,
        };
        // There are three element types; the loads of the encoder distinguish them.
        let element = match T::KIND {
            Kind::F16 => 1u32,
            Kind::Bf16 => 2,
            _ => 0,
        };
        let arguments = [
            Argument::from(values),
            element.into(),
            part.before.into(),
            part.count.into(),
            rule.into(),
            u32::from(scale == ScaleRule::LeastSquares).into(),
            bytes.into(),
            record.into(),
        ];
        let grid = part.shared_out(self, "block_encode", kernel, MADE)?;
        // SAFETY: there are so many values, whole blocks of them, and room for their bytes; both begin at multiples of
        // 16 bytes, and what is written is borrowed alone.
        unsafe { self.launch("block_encode", kernel, grid, &arguments) }
    }

    pub(super) fn launch_decode<T: Element>(
        &mut self,
        format: Format,
        bytes: &DeviceBuffer<u8>,
        part: BlockRange,
        values: &mut DeviceBuffer<T>,
        not_bad: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        part.check(format, values.len(), bytes.len())?;
        let arguments = [
            Argument::from(bytes),
            part.before.into(),
            part.count.into(),
            values.into(),
            not_bad.into(),
        ];
        let kernel = match T::KIND {
            Kind::F16 => by_format!(format, "block_decode", "_f16"),
            Kind::Bf16 => by_format!(format, "block_decode", "_bf16"),
            // There are three element types.
            _ => by_format!(format, "block_decode", "_f32"),
        };
        let grid = part.shared_out(self, "block_decode", kernel, READ)?;
        // SAFETY: as in `launch_encode`.
        unsafe { self.launch("block_decode", kernel, grid, &arguments) }
    }

    pub(super) fn launch_dot(
        &mut self,
        format: Format,
        bytes: &DeviceBuffer<u8>,
        x: &DeviceBuffer<i8>,
        part: BlockRange,
        record: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        part.check(format, x.len(), bytes.len())?;
        let arguments = [
            Argument::from(bytes),
            x.into(),
            part.before.into(),
            part.count.into(),
            record.into(),
        ];
        let kernel = by_format!(format, "block_dot", "");
        let grid = part.shared_out(self, "block_dot", kernel, READ)?;
        // SAFETY: as in `launch_encode`.
        unsafe { self.launch("block_dot", kernel, grid, &arguments) }
    }

    /// Interprets an `EncodeRecord`.
    pub(super) fn encoded(
        &mut self,
        format: Format,
        values: usize,
        record: &DeviceBuffer<u64>,
    ) -> Result<Encoded, CudaError> {
        let mut words = [0; RECORD];
        self.read(record, &mut words)?;
        let [flushed, not_bad, not_overflow] = words;
        // The block with the lowest index is named; a block with a value that is not finite has no scale.
        let overflow = named_block(not_overflow);
        match index(not_bad) {
            Some(index) if overflow.is_none_or(|(block, _)| index / format.len() < block) => {
                return Err(BlockError::NotFinite { index }.into());
            }
            _ => {}
        }
        match overflow {
            Some((block, false)) => Err(BlockError::ScaleOverflow { block }.into()),
            Some((block, true)) => Err(BlockError::MinOverflow { block }.into()),
            None => Ok(Encoded {
                blocks: values / format.len(),
                // At most the number of blocks.
                flushed: flushed as usize,
            }),
        }
    }

    pub(super) fn decoded(&mut self, not_bad: &DeviceBuffer<u64>) -> Result<(), CudaError> {
        let mut words = [0];
        self.read(not_bad, &mut words)?;
        check_finite(words[0])
    }

    /// Interprets a `DotRecord`: the sum in units of 2⁻²⁴.
    pub(super) fn product(&mut self, record: &DeviceBuffer<u64>) -> Result<i128, CudaError> {
        let mut words = [0; RECORD];
        self.read(record, &mut words)?;
        let [low, high, not_bad] = words;
        check_finite(not_bad)?;
        Ok((u128::from(high) << 64 | u128::from(low)).cast_signed())
    }
}
