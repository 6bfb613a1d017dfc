//! Blocks of codes with scales from the caller: one per tensor, or one per row.

use half::f16;
use tercet_core::block::{self, BlockError, Format};
use tercet_core::quant::{Rule, ScaleRule};

/// Returns blocks of a ternary format with one scale, even if all codes of a block are 0. Only the sign of a code
/// counts.
///
/// # Errors
/// [`BlockError::NotTernary`]; [`BlockError::Partial`] if the codes are not a whole number of blocks.
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
    // The largest is 1, or all are 0: a code is its own value.
    let values: Vec<f32> = codes.iter().map(|&code| code.signum().into()).collect();
    block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes)?;
    let at = format.scale_offset();
    for block in bytes.chunks_exact_mut(format.bytes()) {
        block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
    }
    Ok(bytes)
}

/// Returns Q8_0 blocks of rows of `row` codes, each with one scale.
///
/// # Errors
/// [`BlockError::Partial`] if a row is not a whole number of blocks; [`BlockError::Length`] if the number of codes does
/// not match the rows.
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
