//! The caller's slices for a quantized tensor.

use tercet_core::engine::Output;
use tercet_core::quant::{Groups, QuantError};

/// Checks a tensor of the host and the target of its codes.
pub(super) fn check(values: usize, groups: Groups, out: &Output<'_>) -> Result<(), QuantError> {
    groups.check(values)?;
    groups.check(out.codes.len())?;
    let expected = groups.count;
    let points = match out.zero_points.len() {
        0 => expected,
        points => points,
    };
    for found in [out.scales.len(), points] {
        if found != expected {
            return Err(QuantError::Length { expected, found });
        }
    }
    Ok(())
}

/// Sets the scale and zero point of a group that exists.
pub(super) fn set_scale(
    scales: &mut [f32],
    zero_points: &mut [i8],
    group: usize,
    (scale, zero_point): (f32, i8),
) -> Result<(), QuantError> {
    scales[group] = scale;
    match zero_points.get_mut(group) {
        Some(point) => *point = zero_point,
        // Without the zero point the codes cannot be read back.
        None if zero_point != 0 => {
            let (expected, found) = (scales.len(), 0);
            return Err(QuantError::Length { expected, found });
        }
        None => {}
    }
    Ok(())
}
