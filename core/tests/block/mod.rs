//! Laws of the block codecs.

mod edges;
mod golden;
mod laws;
mod refusals;

use tercet_core::block::{self, BlockError, Format};
use tercet_core::quant::{Rule, ScaleRule};

const TERNARY: [Format; 3] = [Format::Tq1_0, Format::Tq2_0, Format::Q2_0];
const RULES: [Rule; 4] = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];

/// Encodes with ggml's rule.
fn encode(format: Format, values: &[f32]) -> Result<Vec<u8>, BlockError> {
    let mut bytes = vec![0xFF; format.encoded_len(values.len())?];
    block::encode(format, Rule::AbsMax, ScaleRule::Rule, values, &mut bytes)?;
    Ok(bytes)
}

fn decode(format: Format, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![f32::NAN; bytes.len() / format.bytes() * format.len()];
    block::decode(format, bytes, &mut out).unwrap();
    out
}

fn codes(format: Format, bytes: &[u8]) -> Vec<i8> {
    let mut out = vec![99; bytes.len() / format.bytes() * format.len()];
    block::codes(format, bytes, &mut out).unwrap();
    out
}
