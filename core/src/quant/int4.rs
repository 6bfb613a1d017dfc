//! int4, symmetric (−7..7), one code per byte; meant for blocks of 32 to 256.

use core::ops::RangeInclusive;

use super::QuantError;
use super::decode::{self, Codes};
use super::driver::{self, Method, Report};
use crate::engine::QuantizeProblem;

/// The largest code.
pub const LIMIT: i8 = 7;

/// Quantizes each group on the grid of [`super::Grid::symmetric`] with [`LIMIT`]: scale = `fl(max|x| / 7)`, codes =
/// `fl(x / scale)` rounded half to even.
///
/// # Errors
/// Those of [`super::quantize`].
pub fn symmetric<P: QuantizeProblem>(problem: &mut P) -> Result<Report, P::Error> {
    driver::quantize(problem, Method::Symmetric { limit: LIMIT }, &mut [])
}

/// Codes that [`dequantize`] accepts.
pub const RANGE: RangeInclusive<i8> = -8..=LIMIT;

/// Writes `fl(code · scale)`.
///
/// # Errors
/// Those of [`super::ternary::dequantize`], with −8..=7 as the range of codes.
pub fn dequantize(codes: Codes<'_>, out: &mut [f32]) -> Result<(), QuantError> {
    decode::dequantize(codes, RANGE, out)
}
