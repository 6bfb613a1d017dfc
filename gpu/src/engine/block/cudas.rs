//! Blocks on several devices: each device has a consecutive part of them.

use tercet_core::block::{BlockError, Encoded, Format, fixed_to_f32};
use tercet_core::engine::{BlockEngine, Refused};
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};

use super::{check_rule, expect};
use crate::engine::cudas::cut;
use crate::engine::{CudaError, Cudas};

/// Shares consist of whole blocks.
impl BlockEngine for Cudas {
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
        let (len, size) = format.layout();
        let shares = self.shares(values.len() / len, 1, len);
        let outs = cut(out, shares.iter().map(|blocks| blocks.len() * size));
        let shares = shares.into_iter().zip(outs);
        let done = self.each(shares, |cuda, (blocks, out)| {
            let values = &values[blocks.start * len..blocks.end * len];
            let done = BlockEngine::encode_blocks(cuda, format, rule, scale, values, out);
            done.map_err(|error| after(error, format, blocks.start))
        })?;
        let mut all = Encoded::default();
        for done in done {
            all.blocks += done.blocks;
            all.flushed += done.flushed;
        }
        Ok(all)
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        expect(format.encoded_len(out.len())?, bytes.len())?;
        let (len, size) = format.layout();
        let shares = self.shares(out.len() / len, 1, len);
        let outs = cut(out, shares.iter().map(|blocks| blocks.len() * len));
        let shares = shares.into_iter().zip(outs);
        self.each(shares, |cuda, (blocks, out)| {
            let bytes = &bytes[blocks.start * size..blocks.end * size];
            let done = BlockEngine::decode_blocks(cuda, format, bytes, out);
            done.map_err(|error| after(error, format, blocks.start))
        })?;
        Ok(())
    }

    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, CudaError> {
        expect(format.encoded_len(x.len())?, bytes.len())?;
        let (len, size) = format.layout();
        let shares = self.shares(x.len() / len, 1, len);
        let sums = self.each(shares, |cuda, blocks| {
            let bytes = &bytes[blocks.start * size..blocks.end * size];
            let x = &x[blocks.start * len..blocks.end * len];
            let sum = cuda.dot_fixed(format, bytes, x);
            sum.map_err(|error| after(error, format, blocks.start))
        })?;
        // Below 2¹²⁷ for any number of blocks, as core shows.
        Ok(fixed_to_f32(sums.iter().sum()) * x_scale)
    }
}

/// Converts an error about blocks that come after `first` others.
fn after(error: CudaError, format: Format, first: usize) -> CudaError {
    let CudaError::Refused(Refused::Block(error)) = error else {
        return error;
    };
    let moved = match error {
        BlockError::NotFinite { index } => BlockError::NotFinite {
            index: first * format.len() + index,
        },
        BlockError::ScaleOverflow { block } => BlockError::ScaleOverflow {
            block: first + block,
        },
        BlockError::ScaleNotFinite { block } => BlockError::ScaleNotFinite {
            block: first + block,
        },
        other => other,
    };
    moved.into()
}
