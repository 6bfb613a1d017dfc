//! Blocks of codes whose scales are the caller's: one a tensor, or one a row.

use half::f16;
use tercet_core::block::{self, BlockError, Format};
use tercet_core::quant::{Rule, ScaleRule};

/// Blocks of a ternary format with one scale, also where all codes of a block are 0. Of a code only its sign counts.
///
/// # Errors
/// [`BlockError::NotTernary`]; [`BlockError::Partial`] where the codes are no whole number of blocks.
///
/// ```
/// use half::f16;
/// use tercet_core::block::{Format, decode};
/// use tercet_host::language::ternary;
///
/// let codes = [1i8, 0, -1, 0].repeat(64);
/// let bytes = ternary(Format::Tq2_0, &codes, f16::from_f32(0.25))?;
/// let mut values = [0.0; 256];
/// decode(Format::Tq2_0, &bytes, &mut values)?;
/// assert_eq!(values[..4], [0.25, 0.0, -0.25, 0.0]);
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
pub fn ternary(format: Format, codes: &[i8], scale: f16) -> Result<Vec<u8>, BlockError> {
    if !format.is_ternary() {
        return Err(BlockError::NotTernary);
    }
    let mut bytes = vec![0; format.encoded_len(codes.len())?];
    // The largest is 1, or all are 0: a code is a value.
    let values: Vec<f32> = codes.iter().map(|&code| code.signum().into()).collect();
    block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes)?;
    let at = format.scale_offset();
    for block in bytes.chunks_exact_mut(format.bytes()) {
        block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
    }
    Ok(bytes)
}

/// Q8_0 blocks of rows of `row` codes that have one scale each.
///
/// # Errors
/// [`BlockError::Partial`] where a row is no whole number of blocks; [`BlockError::Length`] for another number of codes than
/// the rows have.
pub fn byte_rows(row: usize, codes: &[i8], scales: &[f16]) -> Result<Vec<u8>, BlockError> {
    let format = Format::Q8_0;
    format.encoded_len(row)?;
    let expected = row.saturating_mul(scales.len());
    if codes.len() != expected {
        let found = codes.len();
        return Err(BlockError::Length { expected, found });
    }
    let mut bytes = Vec::with_capacity(format.encoded_len(codes.len())?);
    for (codes, scale) in codes.chunks_exact(row.max(1)).zip(scales) {
        for block in codes.chunks_exact(format.len()) {
            bytes.extend(scale.to_le_bytes());
            bytes.extend(block.iter().map(|&code| code as u8));
        }
    }
    Ok(bytes)
}
