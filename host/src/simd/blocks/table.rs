//! The functions that blocks need from an instruction set.

use tercet_core::block::Format;

use super::ternary::Cut;
use crate::simd::past::CopyPast;

/// The block functions of one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a
/// [`Backend`](crate::simd::Backend) gives access to.
#[derive(Debug)]
pub(in crate::simd) struct Blocks {
    pub(in crate::simd) values: Values,
    pub(in crate::simd) tq1_0: Pack<256, 54>,
    pub(in crate::simd) tq2_0: Pack<256, 66>,
    pub(in crate::simd) q2_0: Pack<64, 18>,
    /// For formats that are not ternary; `None`, here and below, if core does the work.
    pub(in crate::simd) encode: fn(Format) -> Option<Encode>,
    pub(in crate::simd) decode: fn(Format) -> Option<Decode>,
    pub(in crate::simd) dot: fn(Format) -> Option<Dot>,
    pub(in crate::simd) stream: Option<CopyPast>,
}

/// The functions on the values of one ternary block: 64 or 256 of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Values {
    /// Returns the largest pattern of a magnitude; NaN and infinities are patterns as well.
    pub(in crate::simd) largest: unsafe fn(&[f32]) -> u32,
    /// Returns Σ|x| in f64, in any order.
    pub(in crate::simd) sum: unsafe fn(&[f32]) -> f64,
    /// Returns Σ|x| in f64, in any order, of the values that a cut encodes, and their number.
    pub(in crate::simd) coded: unsafe fn(&[f32], Cut) -> (f64, u32),
    /// Returns Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds; no addend takes part in more than 64
    /// additions.
    pub(in crate::simd) tails: Tails,
    /// Appends the |x| in low..high to a buffer, which has room for all of them and 16 more.
    pub(in crate::simd) between: unsafe fn(&[f32], [f32; 2], &mut [f32]) -> usize,
}

/// Writes a block's codes and its scale; false if the scale overflows f16.
pub(in crate::simd) type Pack<const LEN: usize, const BYTES: usize> =
    unsafe fn(&[f32; LEN], Cut, f32, &mut [u8; BYTES]) -> bool;
/// Sums and counts above two bounds.
pub(in crate::simd) type Tails = unsafe fn(&[f32], [f32; 2]) -> [(f32, u32); 2];
/// Encodes whole blocks from the first on, and returns their number: all of them, or fewer if the next ones are not
/// ordinary.
pub(in crate::simd) type Encode = unsafe fn(&[f32], &mut [u8]) -> usize;
/// Decodes whole blocks up to the first whose scale is not finite, and returns their number.
pub(in crate::simd) type Decode = unsafe fn(&[u8], &mut [f32]) -> usize;
/// As [`tercet_core::block::dot_fixed`]; `None` if a scale is not finite.
pub(in crate::simd) type Dot = unsafe fn(&[u8], &[i8]) -> Option<i128>;
