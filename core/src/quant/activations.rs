//! Activations of a model: the root-mean-square norm and quantization in one operation.
//!
//! For a row x of n values, gains g and ε (every step is rounded once to f32, and nothing is fused):
//! 1. yᵢ = xᵢ · gᵢ; M = max |yᵢ|; codes cᵢ = yᵢ · (L / M) rounded half to even, with L the [limit](Code::LIMIT) of
//!    the code's type.
//! 2. r = √(Σx² / n + ε), with the sum in the order of [`crate::number::Lanes`]; scale = (M / r) / L, so that cᵢ ·
//!    scale stands for yᵢ / r.
//!
//! The root mean square cancels in the codes, so they need one pass less than a norm that is quantized afterwards.
//! Sources: Zhang and Sennrich, *Root Mean Square Layer Normalization*, 2019; for activations scaled by the largest
//! magnitude per row, Wang et al., *BitNet*, 2023. Without a norm, y = x and scale = M / L. If M = 0, or L / M is not
//! finite (M below about 2⁻¹²¹), codes and scale are 0.
//!
//! If a y, Σx², r or the scale of a row is not finite, the row gets codes 0 and the scale NaN. The error names that
//! row; the other rows are not affected.
//!
//! ```
//! use tercet_core::quant::activations::{self, Activations, Norm};
//!
//! let (gains, x) = ([1.0, 2.0], [3.0, 4.0, -1.0, 0.0]);
//! let norm = Norm { gains: &gains, eps: 0.0 };
//! let (mut codes, mut scales) = ([0i8; 4], [0.0; 2]);
//! activations::quantize(&x, Some(norm), Activations::A8(&mut codes), &mut scales)?;
//! // 3 and 8, and −1 and 0, over root mean squares of 3.54 and 0.71.
//! assert_eq!(codes, [48, 127, -127, 0]);
//! assert!((f32::from(codes[1]) * scales[0] - 8.0 / 12.5f32.sqrt()).abs() < 1e-6);
//! # Ok::<(), tercet_core::quant::QuantError>(())
//! ```

use super::QuantError;
use crate::number::bits::{self, INFINITE};
use crate::number::root::sqrt_f32;
use crate::number::round::half_even_small;
use crate::number::{Lanes, Plain};

/// The norm of a row: gains and ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm<'a> {
    /// One factor per column.
    pub gains: &'a [f32],
    /// Number added to the mean of squares (ε).
    pub eps: f32,
}

/// A type of codes.
pub trait Code: Plain {
    /// The code of a row's largest magnitude: 127 or 127 · 256. The latter is the largest limit whose codes all equal
    /// 255·a + b with both a and b within ±127 ([`planes`]).
    const LIMIT: f32;

    /// Returns the code of an integer within ±[`Code::LIMIT`].
    fn of(integer: i32) -> Self;
}

impl Code for i8 {
    const LIMIT: f32 = 127.0;

    #[inline(always)]
    fn of(integer: i32) -> Self {
        integer as i8
    }
}

impl Code for i16 {
    const LIMIT: f32 = 32_512.0;

    #[inline(always)]
    fn of(integer: i32) -> Self {
        integer as i16
    }
}

/// Destination of the codes, in rows like the values.
#[derive(Debug)]
pub enum Activations<'a> {
    /// 8-bit codes.
    A8(&'a mut [i8]),
    /// 16-bit codes.
    A16(&'a mut [i16]),
}

impl Activations<'_> {
    /// Returns the number of codes.
    pub const fn len(&self) -> usize {
        match self {
            Self::A8(codes) => codes.len(),
            Self::A16(codes) => codes.len(),
        }
    }

    /// Returns true if there are no codes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Quantizes as many rows as there are scales; see the module. O(n).
///
/// # Errors
/// Those of [`columns`]; [`QuantError::RowNotFinite`] with the first row that is not finite, after all rows are done.
pub fn quantize(
    x: &[f32],
    norm: Option<Norm<'_>>,
    out: Activations<'_>,
    scales: &mut [f32],
) -> Result<(), QuantError> {
    let cols = columns(x, norm, out.len(), scales.len())?;
    match out {
        Activations::A8(codes) => rows(x, cols, norm, codes, scales),
        Activations::A16(codes) => rows(x, cols, norm, codes, scales),
    }
    finite(scales)
}

/// Returns the number of columns of rows to quantize: 0 if there are no rows.
///
/// # Errors
/// [`QuantError::GroupLength`] unless the values divide into as many rows as there are scales, with at least one
/// value per row; [`QuantError::Length`] unless there is one code per value and one gain per column.
pub fn columns(
    x: &[f32],
    norm: Option<Norm<'_>>,
    codes: usize,
    scales: usize,
) -> Result<usize, QuantError> {
    let same = |expected, found| match expected == found {
        true => Ok(()),
        false => Err(QuantError::Length { expected, found }),
    };
    same(x.len(), codes)?;
    let cols = x.len().checked_div(scales).unwrap_or(0);
    if cols.checked_mul(scales) != Some(x.len()) || (cols == 0 && scales != 0) {
        return Err(QuantError::GroupLength {
            len: x.len(),
            group_len: cols,
        });
    }
    match norm {
        Some(norm) if scales != 0 => same(cols, norm.gains.len())?,
        _ => {}
    }
    Ok(cols)
}

/// Splits 16-bit codes into two planes of int8 for int8 kernels: each code is 255·high + low, both within ±127. O(n).
///
/// Codes lie within ±[`Code::LIMIT`]; the planes of larger codes are unspecified. If the slices differ in length, the
/// shortest counts.
///
/// ```
/// use tercet_core::quant::activations::planes;
///
/// let (mut high, mut low) = ([0; 3], [0; 3]);
/// planes(&[32_512, -128, 300], &mut high, &mut low);
/// assert_eq!((high, low), ([127, -1, 1], [127, 127, 45]));
/// ```
pub fn planes(codes: &[i16], high: &mut [i8], low: &mut [i8]) {
    for ((&code, high), low) in codes.iter().zip(high).zip(low) {
        let code = i32::from(code);
        // 65,793 is 2²⁴ / 255 rounded down. It gives the quotient rounded to nearest for all codes; tests check each
        // one. The product stays below 2³¹.
        let nearest = code.wrapping_mul(65_793).wrapping_add(1 << 23) >> 24;
        *high = nearest as i8;
        *low = (code - 255 * nearest) as i8;
    }
}

/// Checks the scales that [`quantize`] wrote: the first NaN marks the first row that is not finite.
///
/// # Errors
/// [`QuantError::RowNotFinite`].
pub fn finite(scales: &[f32]) -> Result<(), QuantError> {
    match scales.iter().position(|scale| scale.is_nan()) {
        Some(row) => Err(QuantError::RowNotFinite { row }),
        None => Ok(()),
    }
}

fn rows<C: Code>(
    x: &[f32],
    cols: usize,
    norm: Option<Norm<'_>>,
    codes: &mut [C],
    scales: &mut [f32],
) {
    // Not zipped: a zip divides by the rows' length, and the compiler does not know that this is not 0.
    let (mut x, mut codes) = (
        x.chunks_exact(cols.max(1)),
        codes.chunks_exact_mut(cols.max(1)),
    );
    for scale in scales {
        let (Some(x), Some(codes)) = (x.next(), codes.next()) else {
            return;
        };
        *scale = row(x, norm, codes);
    }
}

/// Quantizes one row and returns its scale, or NaN if something is not finite. Plain loops, which engines compile for
/// their processor.
///
/// Uses as many of `codes` and of the gains as there are values.
#[inline(always)]
pub fn row<C: Code>(x: &[f32], norm: Option<Norm<'_>>, codes: &mut [C]) -> f32 {
    let found = match norm {
        Some(norm) => {
            let mut lanes = Lanes::<f32>::new();
            lanes.squares(x);
            let largest = largest_product(x, norm.gains);
            let root = sqrt_f32(lanes.total() / x.len() as f32 + norm.eps);
            (largest, root)
        }
        None => (largest(x.iter().copied()), 1.0),
    };
    let Some((factor, scale)) = decide::<C>(found) else {
        codes.fill(C::of(0));
        return f32::NAN;
    };
    match norm {
        Some(norm) => write_products(x, norm.gains, factor, codes),
        None => write(x.iter().copied(), factor, codes),
    }
    scale
}

/// Returns the factor of the codes and the scale, from the largest magnitude's bit pattern and the root mean square.
/// Both are 0 for a row of zeros. `None` if something is not finite.
#[inline]
fn decide<C: Code>((largest, root): (u32, f32)) -> Option<(f32, f32)> {
    if largest >= INFINITE || !root.is_finite() {
        return None;
    }
    let largest = f32::from_bits(largest);
    let factor = C::LIMIT / largest;
    if !factor.is_finite() {
        return Some((0.0, 0.0));
    }
    // Without a norm the root is 1, so this division changes nothing.
    let scale = largest / root / C::LIMIT;
    scale.is_finite().then_some((factor, scale))
}

#[inline(always)]
fn largest(values: impl Iterator<Item = f32>) -> u32 {
    values.fold(0, |max, y| bits::magnitude(y).max(max))
}

/// True if the loops take four values per step. With vector units compilers do so themselves; without them, single
/// steps cost a third more.
const FOUR: bool = cfg!(target_os = "none");

/// Returns [`largest`] of the products.
#[inline(always)]
fn largest_product(x: &[f32], gains: &[f32]) -> u32 {
    if !FOUR {
        return largest(x.iter().zip(gains).map(|(&x, &gain)| x * gain));
    }
    let ((x, x_rest), (gains, gains_rest)) = (x.as_chunks(), gains.as_chunks());
    let rest = x_rest.iter().zip(gains_rest).map(|(&x, &gain)| x * gain);
    let fours = x.iter().zip(gains);
    fours.fold(largest(rest), |most, (&[a, b, c, d], &[e, f, g, h])| {
        let (a, b) = (bits::magnitude(a * e), bits::magnitude(b * f));
        let (c, d) = (bits::magnitude(c * g), bits::magnitude(d * h));
        most.max(a).max(b).max(c).max(d)
    })
}

/// Does [`write`] for the products.
#[inline(always)]
fn write_products<C: Code>(x: &[f32], gains: &[f32], factor: f32, codes: &mut [C]) {
    if !FOUR {
        let products = x.iter().zip(gains).map(|(&x, &gain)| x * gain);
        return write(products, factor, codes);
    }
    let (codes, codes_rest) = codes.as_chunks_mut();
    let ((x, x_rest), (gains, gains_rest)) = (x.as_chunks(), gains.as_chunks());
    let rest = x_rest.iter().zip(gains_rest).map(|(&x, &gain)| x * gain);
    write(rest, factor, codes_rest);
    for ((codes, &[a, b, c, d]), &[e, f, g, h]) in codes.iter_mut().zip(x).zip(gains) {
        let code = |y: f32| C::of(half_even_small(y * factor));
        // Not mapped: an array that is not written out becomes a loop over memory when the compiler optimizes for
        // size.
        *codes = [code(a * e), code(b * f), code(c * g), code(d * h)];
    }
}

#[inline(always)]
fn write<C: Code>(values: impl Iterator<Item = f32>, factor: f32, codes: &mut [C]) {
    for (code, y) in codes.iter_mut().zip(values) {
        *code = C::of(half_even_small(y * factor));
    }
}
