//! int8: symmetric (−127..127) and affine (−128..127 with a zero point), per tensor, row or block.
//!
//! Codes are those of ONNX `QuantizeLinear`: `half_even(fl(x / scale)) + zero_point`, saturated.

use core::ops::RangeInclusive;

use super::decode::{self, Codes};
use super::driver::{self, Method, Report};
use super::{Grid, QuantError};
use crate::engine::QuantizeProblem;

/// The largest code of the symmetric grid.
pub const LIMIT: i8 = 127;

/// Quantizes each group on the grid of [`Grid::symmetric`] with [`LIMIT`].
///
/// # Errors
/// Those of [`super::quantize`].
pub fn symmetric<P: QuantizeProblem>(problem: &mut P) -> Result<Report, P::Error> {
    driver::quantize(problem, Method::Symmetric { limit: LIMIT }, &mut [])
}

/// Quantizes each group on the grid of [`Grid::affine`] over its own range.
///
/// # Errors
/// Those of [`super::quantize`].
pub fn affine<P: QuantizeProblem>(problem: &mut P) -> Result<Report, P::Error> {
    driver::quantize(problem, Method::Affine, &mut [])
}

/// Quantizes every group on one given grid, such as calibration finds.
///
/// # Errors
/// Those of [`super::quantize`].
pub fn fixed<P: QuantizeProblem>(problem: &mut P, grid: Grid) -> Result<Report, P::Error> {
    driver::quantize(problem, Method::Fixed(grid), &mut [])
}

/// Codes that [`dequantize`] accepts: all.
pub const RANGE: RangeInclusive<i8> = i8::MIN..=i8::MAX;

/// Writes `fl((code − zero_point) · scale)`; an empty `zero_points` means that all are 0.
///
/// Every i8 is a valid code, including −128.
///
/// # Errors
/// Those of [`super::ternary::dequantize`].
pub fn dequantize(codes: Codes<'_>, out: &mut [f32]) -> Result<(), QuantError> {
    decode::dequantize(codes, RANGE, out)
}
