//! Counts and sums magnitudes by bit pattern.

use crate::engine::{MagnitudeBin, MagnitudeSpan};
use crate::number::{Element, bits};
use crate::quant::QuantError;

/// Adds each value whose magnitude pattern is in `span` to its bin.
///
/// One pass.
///
/// # Errors
/// [`QuantError::Length`] unless `bins` has the span's length.
pub fn magnitudes<T: Element>(
    values: &[T],
    span: MagnitudeSpan,
    bins: &mut [MagnitudeBin],
) -> Result<(), QuantError> {
    span.check(bins)?;
    let width = span.end.saturating_sub(span.first);
    for value in values {
        let pattern = bits::magnitude(value.to_f32());
        // Patterns below `first` wrap to numbers above any width.
        let offset = pattern.wrapping_sub(span.first);
        if offset >= width {
            continue;
        }
        if let Some(bin) = bins.get_mut((offset >> span.shift) as usize) {
            bin.count += 1;
            bin.mantissas += u64::from(bits::mantissa(pattern));
        }
    }
    Ok(())
}

/// Writes each value's magnitude pattern.
///
/// # Errors
/// [`QuantError::Length`] unless there is one element per value.
pub fn read_magnitudes<T: Element>(values: &[T], out: &mut [u32]) -> Result<(), QuantError> {
    if values.len() != out.len() {
        return Err(QuantError::Length {
            expected: values.len(),
            found: out.len(),
        });
    }
    for (value, pattern) in values.iter().zip(out) {
        *pattern = bits::magnitude(value.to_f32());
    }
    Ok(())
}
