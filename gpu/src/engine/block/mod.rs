//! GGUF blocks on a device: encoding, decoding and products with int8 activations.

mod cudas;
mod launches;

use tercet_core::block::{BlockError, Encoded, Format, fixed_to_f32};
use tercet_core::engine::BlockEngine;
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};

use self::launches::{BlockRange, RECORD};
use super::{Chunks, Cuda, CudaError, DeviceBuffer, Item};

/// Values of a chunk of a tensor that passes through the device.
const CHUNK: usize = 16 << 20;
/// Values of the smallest chunk.
const LEAST: usize = 64 << 10;

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
///     cuda.encode_resident(&weights, Rule::AbsMax, ScaleRule::Rule, &mut blocks)?;
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
    /// Returns the format of the blocks.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the number of values.
    pub const fn len(&self) -> usize {
        self.values
    }

    /// True if there are no values.
    pub const fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// Returns the bytes, as in a file.
    pub const fn bytes(&self) -> &DeviceBuffer<u8> {
        &self.bytes
    }

    /// Returns the bytes, to be written.
    pub const fn bytes_mut(&mut self) -> &mut DeviceBuffer<u8> {
        &mut self.bytes
    }
}

/// Returns chunks with one block per item.
const fn chunks(format: Format) -> Chunks {
    Chunks {
        most: CHUNK / format.len(),
        least: LEAST / format.len(),
    }
}

fn expect(expected: usize, found: usize) -> Result<(), BlockError> {
    if expected == found {
        Ok(())
    } else {
        Err(BlockError::Length { expected, found })
    }
}

/// Checks that a format has an encoder, and accepts a rule.
fn check_rule(format: Format, rule: Rule, scale: ScaleRule) -> Result<(), BlockError> {
    if !format.can_encode() {
        Err(BlockError::ReadOnly)
    } else if format.is_ternary() || (rule == Rule::AbsMax && scale == ScaleRule::Rule) {
        Ok(())
    } else {
        Err(BlockError::Rule)
    }
}

impl BlockEngine for Cuda {
    type Error = CudaError;

    fn encode_blocks<T: Element>(
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
                let part = BlockRange::of_blocks(format, &blocks);
                cuda.launch_encode(format, (rule, scale), values, part, bytes, &mut record)
            },
        )?;
        self.encoded(format, values.len(), &record)
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), CudaError> {
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
                let part = BlockRange::of_blocks(format, &blocks);
                cuda.launch_decode(format, bytes, part, values, &mut not_bad)
            },
        )?;
        self.decoded(&not_bad)
    }

    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, CudaError> {
        expect(format.encoded_len(x.len())?, bytes.len())?;
        Ok(fixed_to_f32(self.dot_fixed(format, bytes, x)?) * x_scale)
    }
}

impl Cuda {
    /// As [`tercet_core::block::dot_fixed`], for whole blocks.
    fn dot_fixed(&mut self, format: Format, bytes: &[u8], x: &[i8]) -> Result<i128, CudaError> {
        let (len, size) = format.layout();
        let mut record = self.zeros(RECORD)?;
        self.in_chunks(x.len() / len, chunks(format), |cuda, blocks| {
            let weights = cuda.upload(&bytes[blocks.start * size..blocks.end * size])?;
            let x = cuda.upload(&x[blocks.start * len..blocks.end * len])?;
            let part = BlockRange::of_blocks(format, &blocks);
            cuda.launch_dot(format, &weights, &x, part, &mut record)
        })?;
        self.product(&record)
    }

    /// Allocates the blocks of `values` values, all bytes 0.
    ///
    /// # Errors
    /// [`BlockError::Partial`], [`BlockError::TooLarge`]; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn blocks(&mut self, format: Format, values: usize) -> Result<DeviceBlocks, CudaError> {
        Ok(DeviceBlocks {
            format,
            values,
            bytes: self.zeros(format.encoded_len(values)?)?,
        })
    }

    /// Encodes values on the device into blocks that stay there. As [`tercet_core::block::encode`].
    ///
    /// # Errors
    /// Those of [`tercet_core::block::encode`]; [`CudaError::Length`] unless there are as many values, in a buffer of
    /// this engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn encode_resident<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        rule: Rule,
        scale: ScaleRule,
        out: &mut DeviceBlocks,
    ) -> Result<Encoded, CudaError> {
        let (format, part) = (out.format, BlockRange::whole(out.values));
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

    /// Decodes blocks on the device to f32, or rounded further to f16 or bf16. The values stay there. As
    /// [`tercet_core::block::decode`].
    ///
    /// # Errors
    /// [`BlockError::ScaleNotFinite`]; [`CudaError::Length`] unless `out` holds as many values and belongs to this
    /// engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn decode_resident<T: Element>(
        &mut self,
        blocks: &DeviceBlocks,
        out: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        out.check(&self.pool, blocks.values)?;
        let mut not_bad = self.zeros(1)?;
        let part = BlockRange::whole(blocks.values);
        self.launch_decode(blocks.format, &blocks.bytes, part, out, &mut not_bad)?;
        self.decoded(&not_bad)
    }

    /// Multiplies blocks with activations, both on the device. As [`tercet_core::block::dot`].
    ///
    /// # Errors
    /// [`BlockError::ScaleNotFinite`]; [`CudaError::Length`] unless there is an activation for each value, in a buffer
    /// of this engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn dot_resident(
        &mut self,
        blocks: &DeviceBlocks,
        x: &DeviceBuffer<i8>,
        x_scale: f32,
    ) -> Result<f32, CudaError> {
        x.check(&self.pool, blocks.values)?;
        let mut record = self.zeros(RECORD)?;
        let part = BlockRange::whole(blocks.values);
        self.launch_dot(blocks.format, &blocks.bytes, x, part, &mut record)?;
        Ok(fixed_to_f32(self.product(&record)?) * x_scale)
    }
}
