//! GGUF's blocks on a device: encoding, decoding and products with int8 activations.

use tercet_core::block::{BlockError, Encoded, Format, fixed_to_f32};
use tercet_core::engine::BlockEngine;
use tercet_core::number::Element;
use tercet_core::pool::Kind;
use tercet_core::quant::{Rule, ScaleRule};

use super::{Argument, Chunks, Cuda, CudaError, DeviceBuffer, Grid, Item};

/// Values that a block of threads holds at a time.
const TILE: usize = 2048;
/// Values of a chunk of a tensor that passes through the device.
const CHUNK: usize = 16 << 20;
/// Values of the smallest chunk.
const LEAST: usize = 64 << 10;

/// Words of an `EncodeRecord` and of a `DotRecord` (`kernels/cuda/block_encode.cu`, `block_dot.cu`).
const RECORD: usize = 3;

/// Encoded blocks on a device.
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_core::quant::{Rule, ScaleRule};
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn encode(weights: &[f32]) -> Result<Vec<u8>, CudaError> {
///     let mut cuda = Cuda::first()?;
///     let weights = cuda.upload(weights)?;
///     let mut blocks = cuda.blocks(Format::Tq2_0, weights.len())?;
///     cuda.encode_blocks(&weights, Rule::AbsMax, ScaleRule::Rule, &mut blocks)?;
///     let mut bytes = vec![0; blocks.bytes().len()];
///     cuda.read(blocks.bytes(), &mut bytes)?;
///     Ok(bytes)
/// }
///
/// match encode(&[1.0; 256]) {
///     // Codes 2 in four lanes, and the f16 1.0.
///     Ok(bytes) => assert_eq!((bytes[0], &bytes[64..]), (0b1010_1010, &[0, 0x3C][..])),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct DeviceBlocks {
    format: Format,
    values: usize,
    bytes: DeviceBuffer<u8>,
}

impl DeviceBlocks {
    /// The format of the blocks.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// How many values.
    pub const fn len(&self) -> usize {
        self.values
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// The bytes, as they stand in a file.
    pub const fn bytes(&self) -> &DeviceBuffer<u8> {
        &self.bytes
    }

    /// The bytes, to be written.
    pub const fn bytes_mut(&mut self) -> &mut DeviceBuffer<u8> {
        &mut self.bytes
    }
}

/// A kernel's name for a format.
macro_rules! by_format {
    ($format:expr, $name:literal, $suffix:literal) => {
        match $format {
            Format::Tq1_0 => concat!($name, "_tq1_0", $suffix),
            Format::Tq2_0 => concat!($name, "_tq2_0", $suffix),
            Format::Q2_0 => concat!($name, "_q2_0", $suffix),
            Format::Q8_0 => concat!($name, "_q8_0", $suffix),
            Format::Q4_0 => concat!($name, "_q4_0", $suffix),
        }
    };
}

/// A kernel's name for a format and an element type.
macro_rules! by_element {
    ($format:expr, $element:ty, $name:literal) => {
        match <$element as tercet_core::pool::Plain>::KIND {
            Kind::F16 => by_format!($format, $name, "_f16"),
            Kind::Bf16 => by_format!($format, $name, "_bf16"),
            // There are three elements.
            _ => by_format!($format, $name, "_f32"),
        }
    };
}

/// Values `before..before + count` of a tensor, which begin the buffers.
#[derive(Clone, Copy, Debug)]
struct Part {
    before: usize,
    count: usize,
}

impl Part {
    /// Of blocks `first..first + count`.
    const fn of_blocks(format: Format, blocks: &std::ops::Range<usize>) -> Self {
        Self {
            before: blocks.start * format.len(),
            count: (blocks.end - blocks.start) * format.len(),
        }
    }

    const fn whole(count: usize) -> Self {
        Self { before: 0, count }
    }

    fn grid(self, cuda: &Cuda) -> Grid {
        Grid::strided(self.count, TILE, 256, cuda.most_blocks())
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

/// Chunks in items of a block.
const fn chunks(format: Format) -> Chunks {
    Chunks {
        most: CHUNK / format.len(),
        least: LEAST / format.len(),
    }
}

/// An index that a kernel wrote as its complement, so that 0 is none.
fn index(complement: u64) -> Option<usize> {
    // Below `usize`, since it is an index.
    (complement != 0).then_some(!complement as usize)
}

fn expect(expected: usize, found: usize) -> Result<(), BlockError> {
    if expected == found {
        Ok(())
    } else {
        Err(BlockError::Length { expected, found })
    }
}

/// Checks that a format takes a rule.
fn check_rule(format: Format, rule: Rule, scale: ScaleRule) -> Result<(), BlockError> {
    if format.is_ternary() || (rule == Rule::AbsMax && scale == ScaleRule::Rule) {
        Ok(())
    } else {
        Err(BlockError::Rule)
    }
}

impl BlockEngine for Cuda {
    type Error = CudaError;

    fn encode<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, CudaError> {
        expect(format.encoded_len(values.len())?, out.len())?;
        check_rule(format, rule, scale)?;
        let mut record = self.zeros(RECORD)?;
        let item = Item {
            input: format.len(),
            output: format.bytes(),
        };
        self.stream_through(
            chunks(format),
            item,
            values,
            out,
            |cuda, blocks, values, bytes| {
                let part = Part::of_blocks(format, &blocks);
                cuda.launch_encode(format, (rule, scale), values, part, bytes, &mut record)
            },
        )?;
        self.encoded(format, values.len(), &record)
    }

    fn decode(&mut self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), CudaError> {
        expect(format.encoded_len(out.len())?, bytes.len())?;
        let mut not_bad = self.zeros(1)?;
        let item = Item {
            input: format.bytes(),
            output: format.len(),
        };
        self.stream_through(
            chunks(format),
            item,
            bytes,
            out,
            |cuda, blocks, bytes, values| {
                let part = Part::of_blocks(format, &blocks);
                cuda.launch_decode(format, bytes, part, values, &mut not_bad)
            },
        )?;
        self.decoded(&not_bad)
    }

    fn dot(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, CudaError> {
        expect(format.encoded_len(x.len())?, bytes.len())?;
        let (len, size) = format.layout();
        let mut record = self.zeros(RECORD)?;
        self.in_chunks(x.len() / len, chunks(format), |cuda, blocks| {
            let weights = cuda.upload(&bytes[blocks.start * size..blocks.end * size])?;
            let x = cuda.upload(&x[blocks.start * len..blocks.end * len])?;
            let part = Part::of_blocks(format, &blocks);
            cuda.launch_dot(format, &weights, &x, part, &mut record)
        })?;
        self.product(&record, x_scale)
    }
}

impl Cuda {
    /// Room for the blocks of `values` values, all bytes 0.
    ///
    /// # Errors
    /// [`BlockError::Partial`], [`BlockError::TooLarge`]; [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn blocks(&mut self, format: Format, values: usize) -> Result<DeviceBlocks, CudaError> {
        Ok(DeviceBlocks {
            format,
            values,
            bytes: self.zeros(format.encoded_len(values)?)?,
        })
    }

    /// Encodes values that are on the device into blocks that stay there. As [`tercet_core::block::encode`].
    ///
    /// # Errors
    /// Those of [`tercet_core::block::encode`]; [`CudaError::Length`] unless there are as many values, of this engine;
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn encode_blocks<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        rule: Rule,
        scale: ScaleRule,
        out: &mut DeviceBlocks,
    ) -> Result<Encoded, CudaError> {
        let (format, part) = (out.format, Part::whole(out.values));
        check_rule(format, rule, scale)?;
        values.check(&self.pool, out.values)?;
        let mut record = self.zeros(RECORD)?;
        self.launch_encode(
            format,
            (rule, scale),
            values,
            part,
            &mut out.bytes,
            &mut record,
        )?;
        self.encoded(format, out.values, &record)
    }

    /// Decodes blocks that are on the device, to f32, or rounded on to f16 or bf16, that stay there. As [`tercet_core::block::decode`].
    ///
    /// # Errors
    /// [`BlockError::ScaleNotFinite`]; [`CudaError::Length`] unless `out` holds as many values, of this engine; [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn decode_blocks<T: Element>(
        &mut self,
        blocks: &DeviceBlocks,
        out: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        out.check(&self.pool, blocks.values)?;
        let mut not_bad = self.zeros(1)?;
        let part = Part::whole(blocks.values);
        self.launch_decode(blocks.format, &blocks.bytes, part, out, &mut not_bad)?;
        self.decoded(&not_bad)
    }

    /// The product of blocks with activations, both on the device. As [`tercet_core::block::dot`].
    ///
    /// # Errors
    /// [`BlockError::ScaleNotFinite`]; [`CudaError::Length`] unless there is an activation for each value, of this engine;
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn dot_blocks(
        &mut self,
        blocks: &DeviceBlocks,
        x: &DeviceBuffer<i8>,
        x_scale: f32,
    ) -> Result<f32, CudaError> {
        x.check(&self.pool, blocks.values)?;
        let mut record = self.zeros(RECORD)?;
        let part = Part::whole(blocks.values);
        self.launch_dot(blocks.format, &blocks.bytes, x, part, &mut record)?;
        self.product(&record, x_scale)
    }

    fn launch_encode<T: Element>(
        &mut self,
        format: Format,
        (rule, scale): (Rule, ScaleRule),
        values: &DeviceBuffer<T>,
        part: Part,
        bytes: &mut DeviceBuffer<u8>,
        record: &mut DeviceBuffer<u64>,
    ) -> Result<(), CudaError> {
        part.check(format, values.len(), bytes.len())?;
        let rule = match rule {
            Rule::AbsMax => 0u32,
            Rule::AbsMean => 1,
            Rule::Twn => 2,
            Rule::Optimal => 3,
        };
        let arguments = [
            Argument::from(values),
            part.before.into(),
            part.count.into(),
            rule.into(),
            u32::from(scale == ScaleRule::LeastSquares).into(),
            bytes.into(),
            record.into(),
        ];
        let kernel = by_element!(format, T, "block_encode");
        // SAFETY: there are so many values, whole blocks of them, and room for their bytes; both begin at multiples of 16 bytes, and what is
        // written is borrowed alone.
        unsafe { self.launch("block_encode", kernel, part.grid(self), &arguments) }
    }

    fn launch_decode<T: Element>(
        &mut self,
        format: Format,
        bytes: &DeviceBuffer<u8>,
        part: Part,
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
        let kernel = by_element!(format, T, "block_decode");
        // SAFETY: as in `launch_encode`.
        unsafe { self.launch("block_decode", kernel, part.grid(self), &arguments) }
    }

    fn launch_dot(
        &mut self,
        format: Format,
        bytes: &DeviceBuffer<u8>,
        x: &DeviceBuffer<i8>,
        part: Part,
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
        // SAFETY: as in `launch_encode`.
        unsafe { self.launch("block_dot", kernel, part.grid(self), &arguments) }
    }

    /// What an `EncodeRecord` tells.
    fn encoded(
        &mut self,
        format: Format,
        values: usize,
        record: &DeviceBuffer<u64>,
    ) -> Result<Encoded, CudaError> {
        let mut words = [0; RECORD];
        self.read(record, &mut words)?;
        let [flushed, not_bad, not_overflow] = words;
        // The block with the lowest index is named; one with a value that is not finite has no scale.
        let overflow = index(not_overflow);
        match index(not_bad) {
            Some(index) if overflow.is_none_or(|block| index / format.len() < block) => {
                return Err(BlockError::NotFinite { index }.into());
            }
            _ => {}
        }
        match overflow {
            Some(block) => Err(BlockError::ScaleOverflow { block }.into()),
            None => Ok(Encoded {
                blocks: values / format.len(),
                // No more than there are blocks.
                flushed: flushed as usize,
            }),
        }
    }

    fn decoded(&mut self, not_bad: &DeviceBuffer<u64>) -> Result<(), CudaError> {
        let mut words = [0];
        self.read(not_bad, &mut words)?;
        match index(words[0]) {
            Some(block) => Err(BlockError::ScaleNotFinite { block }.into()),
            None => Ok(()),
        }
    }

    /// What a `DotRecord` tells.
    fn product(&mut self, record: &DeviceBuffer<u64>, x_scale: f32) -> Result<f32, CudaError> {
        let mut words = [0; RECORD];
        self.read(record, &mut words)?;
        let [low, high, not_bad] = words;
        if let Some(block) = index(not_bad) {
            return Err(BlockError::ScaleNotFinite { block }.into());
        }
        let sum = (u128::from(high) << 64 | u128::from(low)).cast_signed();
        Ok(fixed_to_f32(sum) * x_scale)
    }
}
