//! Applies a ternary plan.

use crate::number::{Element, ExactSum, bits};
use crate::quant::{Applied, QuantError, ternary};

/// Writes sign(x) if `bits(|x|) >= threshold`, else 0. Counts the coded values, and sums them if `sum` asks for it.
///
/// One pass, no scratch.
///
/// # Errors
/// [`QuantError::Length`] unless there is one code per value.
pub fn ternary<T: Element>(
    values: &[T],
    threshold: u32,
    sum: bool,
    codes: &mut [i8],
) -> Result<Applied, QuantError> {
    if values.len() != codes.len() {
        return Err(QuantError::Length {
            expected: values.len(),
            found: codes.len(),
        });
    }
    let mut coded = 0;
    let mut coded_sum = ExactSum::ZERO;
    // The coded magnitudes of a chunk, and 0 for the others: the loop has no branches, and the sum takes long slices.
    let mut kept = [0f32; 256];
    for (values, codes) in values.chunks(kept.len()).zip(codes.chunks_mut(kept.len())) {
        let mut count = 0u32;
        for ((value, code), kept) in values.iter().zip(codes.iter_mut()).zip(&mut kept) {
            let x = value.to_f32();
            let is_coded = bits::magnitude(x) >= threshold;
            *code = ternary::code(x, threshold);
            *kept = if is_coded { x } else { 0.0 };
            count += u32::from(is_coded);
        }
        coded += u64::from(count);
        if sum {
            coded_sum.add_slice(kept.get(..values.len()).unwrap_or(&kept));
        }
    }
    Ok(Applied {
        coded,
        coded_sum,
        clipped: 0,
    })
}
