//! The operations that the quantizers' loops need from an instruction set.

use tercet_core::number::Element;
use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use crate::simd::exact::Window;
use crate::simd::vectors::Doubles;

/// Vectors per step.
pub(super) const VECTORS: usize = 4;

/// Operations of a detected set that quantizers need beside its vectors, on f32 values as their 32-bit patterns. A step
/// of the loops is four vectors, with at most 16 lanes each.
pub(in crate::simd) trait Quantizing: Doubles {
    /// The codes of a step.
    type Codes: Copy;

    /// Reads and widens as many halves.
    ///
    /// # Safety
    /// All of them can be read, at any alignment; the same holds for all functions that read.
    unsafe fn load_f16(self, at: *const f16) -> Self::Words;
    /// Reads and widens as many halves.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn load_bf16(self, at: *const bf16) -> Self::Words;

    /// Returns the larger patterns of each pair, as unsigned and as signed integers.
    fn larger(self, most: [Self::Words; 2], x: Self::Words) -> [Self::Words; 2];
    /// Returns the smaller patterns of each pair, as unsigned and as signed integers.
    fn smaller(self, least: [Self::Words; 2], x: Self::Words) -> [Self::Words; 2];
    /// Returns the largest lane of the first as unsigned, and of the second as signed integers.
    fn largest(self, most: [Self::Words; 2]) -> (u32, i32);
    /// Returns the smallest lane of the first as unsigned, and of the second as signed integers.
    fn smallest(self, least: [Self::Words; 2]) -> (u32, i32);

    /// Returns the magnitudes of lanes in `from..=to`, and 0 for the others.
    fn within(self, x: Self::Words, from: Self::Words, to: Self::Words) -> Self::Words;
    /// Adds the magnitudes of a vector; signs are ignored. See [`crate::simd::exact`].
    fn add_magnitudes(self, sums: [Self::Doubles; 2], x: Self::Words) -> [Self::Doubles; 2];
    /// Returns the total of all sums in the window's units: each is a count below 2⁵².
    fn units(self, sums: &[[Self::Doubles; 2]; 4], window: Window) -> u64;

    /// Returns the signs of values whose magnitudes reach a threshold of at least 1, 0 for the others; and how many
    /// reach it.
    fn signs(self, x: [Self::Words; 4], threshold: u32) -> (Self::Codes, u32);

    /// Returns the quotients of lanes.
    fn divide_f32(self, x: Self::Words, by: Self::Words) -> Self::Words;
    /// Returns the distance of numbers from the nearest integers, without signs; NaN for values that are not finite.
    fn off(self, x: Self::Words) -> Self::Words;
    /// Rounds numbers of steps to the nearest integers, ties to even, clipped one step beyond the grid's ends or
    /// farther out; NaN becomes a number below.
    fn round(self, x: Self::Words, grid: &Grid) -> Self::Words;
    /// Returns the codes of rounded steps, how many are not the zero point, and how many the grid's ends clip.
    fn codes(self, steps: [Self::Words; 4], grid: &Grid) -> (Self::Codes, u32, u32);

    /// Reads as many codes and returns them less `zero_point`, as f32.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn steps(self, codes: *const i8, zero_point: Self::Words) -> Self::Words;
    /// Writes values, bypassing the caches.
    ///
    /// # Safety
    /// All of them can be written; the address is a multiple of their number of bytes.
    unsafe fn stream_past(self, values: Self::Words, to: *mut f32);

    /// Reads as many bytes as integers.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn bytes(self, at: *const u8) -> Self::Words;
    /// Returns the entries of a table of four patterns, which repeat over the vector, for the two bits of each integer
    /// from bit `shift` on.
    fn choose(self, table: Self::Words, codes: Self::Words, shift: u32) -> Self::Words;
    /// Returns `4 · packed + code + 1` for each byte, for bytes of up to six bits and codes from −1 to 1.
    fn pack(self, packed: Self::Codes, codes: Self::Codes) -> Self::Codes;

    /// Returns patterns whose integers have the order of the values: [`tercet_core::number::bits::ordered`].
    fn ordered(self, x: Self::Words) -> Self::Words;
    /// Writes the upper halves of a step's patterns, in order.
    ///
    /// # Safety
    /// All of them can be written, at any alignment.
    unsafe fn store_tops(self, x: [Self::Words; 4], to: *mut u16);

    /// Reads the codes of a step.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn load_codes(self, from: *const i8) -> Self::Codes;
    /// Writes the codes of a step.
    ///
    /// # Safety
    /// All of them can be written, at any alignment.
    unsafe fn store_codes(self, codes: Self::Codes, to: *mut i8);
    /// Does the same, bypassing the caches.
    ///
    /// # Safety
    /// All of them can be written; the address is a multiple of their number of bytes.
    unsafe fn stream_codes(self, codes: Self::Codes, to: *mut i8);

    /// Reads the first values of a slice, which has at least as many as a vector.
    #[inline(always)]
    fn values<T: Value>(self, from: &[T]) -> Self::Words {
        assert!(from.len() >= self.lanes());
        // SAFETY: as asserted.
        unsafe { T::read(self, from.as_ptr()) }
    }

    /// Reads the codes of a step at the beginning of a slice, which has at least as many.
    #[inline(always)]
    fn read_codes(self, from: &[i8]) -> Self::Codes {
        assert!(from.len() >= VECTORS * self.lanes());
        // SAFETY: as asserted.
        unsafe { self.load_codes(from.as_ptr()) }
    }

    /// Writes the codes of a step to the beginning of a slice, which has at least as many. If `streaming`, they bypass
    /// the caches if the address is a multiple of their number of bytes; then a fence must follow.
    #[inline(always)]
    fn write_codes(self, codes: Self::Codes, to: &mut [i8], streaming: bool) {
        let step = VECTORS * self.lanes();
        assert!(to.len() >= step);
        let at = to.as_mut_ptr();
        // SAFETY: as asserted; on a boundary if past the caches.
        unsafe {
            if streaming && at.addr().is_multiple_of(step) {
                self.stream_codes(codes, at);
            } else {
                self.store_codes(codes, at);
            }
        }
    }
}

/// The three types of values, as vectors of patterns.
pub(in crate::simd) trait Value: Element {
    /// Reads a vector.
    ///
    /// # Safety
    /// As [`Quantizing::load_f16`].
    unsafe fn read<S: Quantizing>(set: S, at: *const Self) -> S::Words;
}

impl Value for f32 {
    #[inline(always)]
    unsafe fn read<S: Quantizing>(set: S, at: *const Self) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.load(at.cast()) }
    }
}

impl Value for f16 {
    #[inline(always)]
    unsafe fn read<S: Quantizing>(set: S, at: *const Self) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.load_f16(at) }
    }
}

impl Value for bf16 {
    #[inline(always)]
    unsafe fn read<S: Quantizing>(set: S, at: *const Self) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.load_bf16(at) }
    }
}
