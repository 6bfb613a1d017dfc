//! Block formats: encoding, decoding and products, with the kernels of a set and core's loops.
//!
//! Kernels process ordinary blocks: finite values, a scale that f16 can hold, and no doubt about a rounding. The others
//! (errors, blocks that flush, sums next to a tie) are passed block by block to [`tercet_core::block`], so that one
//! place defines their results.

pub(in crate::simd) mod codes;
#[cfg(target_arch = "x86_64")]
pub(in crate::simd) mod decode;
pub(in crate::simd) mod dot;
pub(in crate::simd) mod lanes;
pub(in crate::simd) mod loops;
mod optimal;
pub(in crate::simd) mod parts;
mod table;
mod ternary;
pub(in crate::simd) mod values;

use tercet_core::block::{self, BlockError, Encoded, Format};
use tercet_core::quant::{Rule, ScaleRule};

pub(in crate::simd) use loops::by_loops;
pub(in crate::simd) use table::{Blocks, Decode, Dot, Encode, Values};
pub(in crate::simd) use ternary::Cut;

use self::table::Pack;
use super::past::{CopyPast, past};
use super::{Backend, Stores};

/// Blocks that core encodes where an encoder stopped: those that encoders read together.
const STEP: usize = 16;

impl Backend {
    /// As [`block::encode`].
    pub(crate) fn encode_blocks(
        self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        let own = rule == Rule::AbsMax && scale == ScaleRule::Rule;
        match self.kernels().blocks() {
            Some(blocks)
                if format.encoded_len(values.len()) == Ok(out.len())
                    && (own || format.is_ternary()) =>
            {
                blocks.encode(format, rule, scale, values, out)
            }
            // Core reports wrong lengths or rules.
            _ => block::encode(format, rule, scale, values, out),
        }
    }

    /// As [`block::decode`]. Call [`Stores::finish`] before another thread reads the floats.
    pub(crate) fn decode_blocks(
        self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
        stores: Stores,
    ) -> Result<(), BlockError> {
        match self.kernels().blocks() {
            Some(blocks) if format.encoded_len(out.len()) == Ok(bytes.len()) => {
                match blocks.stream.filter(|_| stores == Stores::Streaming) {
                    Some(copy) => blocks.decode_past(format, bytes, out, copy),
                    None => blocks.decode(format, bytes, out),
                }
            }
            _ => block::decode(format, bytes, out),
        }
    }

    /// As [`block::dot_fixed`].
    pub(crate) fn dot_blocks(
        self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
    ) -> Result<i128, BlockError> {
        let sum = match self.kernels().blocks() {
            Some(blocks) if format.encoded_len(x.len()) == Ok(bytes.len()) => {
                blocks.dot(format, bytes, x)
            }
            _ => None,
        };
        match sum {
            Some(sum) => Ok(sum),
            None => block::dot_fixed(format, bytes, x),
        }
    }

    /// Returns the loop that copies floats around the caches, if the backend has one.
    pub(super) fn copy_past(self) -> Option<CopyPast> {
        self.kernels().blocks().and_then(|blocks| blocks.stream)
    }
}

/// The methods require matching lengths.
impl Blocks {
    fn encode(
        &self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        let choice = (rule, scale);
        match format {
            Format::Tq1_0 => ternary::encode(format, &self.values, self.tq1_0, choice, values, out),
            Format::Tq2_0 => ternary::encode(format, &self.values, self.tq2_0, choice, values, out),
            Format::Q2_0 => ternary::encode(format, &self.values, self.q2_0, choice, values, out),
            other => match (self.encode)(other) {
                Some(kernel) => runs(format, kernel, values, out),
                None => block::encode(format, rule, scale, values, out),
            },
        }
    }

    fn decode(&self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
        let done = match (self.decode)(format) {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            Some(decode) => unsafe { decode(bytes, out) },
            None => 0,
        };
        let rest = &bytes[done * format.bytes()..];
        block::decode(format, rest, &mut out[done * format.len()..])
            .map_err(|error| moved(error, done, format))
    }

    /// Decodes around the caches. A part is whole blocks of every format.
    fn decode_past(
        &self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
        copy: CopyPast,
    ) -> Result<(), BlockError> {
        past(copy, out, |first, out| {
            let block = first / format.len();
            let bytes =
                &bytes[block * format.bytes()..][..out.len() / format.len() * format.bytes()];
            self.decode(format, bytes, out)
                .map_err(|error| moved(error, block, format))
        })
    }

    fn dot(&self, format: Format, bytes: &[u8], x: &[i8]) -> Option<i128> {
        // SAFETY: as above.
        unsafe { (self.dot)(format)?(bytes, x) }
    }
}

/// Encodes with a kernel; core encodes the blocks at which it stops.
fn runs(
    format: Format,
    kernel: Encode,
    values: &[f32],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    let blocks = values.len() / format.len();
    let mut whole = Encoded::default();
    while whole.blocks < blocks {
        let (values, out) = (
            &values[whole.blocks * format.len()..],
            &mut out[whole.blocks * format.bytes()..],
        );
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        let done = unsafe { kernel(values, out) };
        let step = STEP.min(blocks - whole.blocks - done);
        whole.blocks += done;
        by_core(
            format,
            (Rule::AbsMax, ScaleRule::Rule),
            &values[done * format.len()..][..step * format.len()],
            &mut out[done * format.bytes()..][..step * format.bytes()],
            &mut whole,
        )?;
    }
    Ok(whole)
}

/// Encodes the blocks after those in `whole`, and counts them there.
fn by_core(
    format: Format,
    (rule, scale): (Rule, ScaleRule),
    values: &[f32],
    out: &mut [u8],
    whole: &mut Encoded,
) -> Result<(), BlockError> {
    let done = block::encode(format, rule, scale, values, out)
        .map_err(|error| moved(error, whole.blocks, format))?;
    whole.blocks += done.blocks;
    whole.flushed += done.flushed;
    Ok(())
}

/// Converts the error of blocks that start at block `start` to one of the whole.
pub(crate) fn moved(error: BlockError, start: usize, format: Format) -> BlockError {
    match error {
        BlockError::NotFinite { index } => BlockError::NotFinite {
            index: index + start * format.len(),
        },
        BlockError::ScaleOverflow { block } => BlockError::ScaleOverflow {
            block: block + start,
        },
        BlockError::MinOverflow { block } => BlockError::MinOverflow {
            block: block + start,
        },
        BlockError::ScaleNotFinite { block } => BlockError::ScaleNotFinite {
            block: block + start,
        },
        BlockError::MinNotFinite { block } => BlockError::MinNotFinite {
            block: block + start,
        },
        other => other,
    }
}
