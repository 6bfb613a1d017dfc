//! What the quantizers' loops ask of an instruction set.

use tercet_core::number::Element;
use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use crate::simd::exact::Window;
use crate::simd::vectors::Doubles;

/// Vectors of a step.
pub(super) const VECTORS: usize = 4;

/// What quantizers ask of a set that runs here beside its vectors: f32 values, taken as their 32-bit patterns. A step of the loops is four
/// vectors, of at most 16 lanes each.
pub(in crate::simd) trait Quantizing: Doubles {
    /// The codes of a step.
    type Codes: Copy;

    /// Reads and widens as many halves.
    ///
    /// # Safety
    /// All of them can be read, at any alignment; so for all that reads.
    unsafe fn load_f16(self, at: *const f16) -> Self::Words;
    /// Reads and widens as many halves.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn load_bf16(self, at: *const bf16) -> Self::Words;

    /// The larger patterns of each pair, as unsigned and as signed integers.
    fn larger(self, most: [Self::Words; 2], x: Self::Words) -> [Self::Words; 2];
    /// The smaller patterns of each pair, as unsigned and as signed integers.
    fn smaller(self, least: [Self::Words; 2], x: Self::Words) -> [Self::Words; 2];
    /// The largest lane of the first as unsigned, and of the second as signed integers.
    fn largest(self, most: [Self::Words; 2]) -> (u32, i32);
    /// The smallest lane of the first as unsigned, and of the second as signed integers.
    fn smallest(self, least: [Self::Words; 2]) -> (u32, i32);

    /// The magnitudes of lanes where they lie in `from..=to`, 0 in the others.
    fn within(self, x: Self::Words, from: Self::Words, to: Self::Words) -> Self::Words;
    /// Adds the magnitudes of a vector; signs are not looked at. See [`crate::simd::exact`].
    fn add_magnitudes(self, sums: [Self::Doubles; 2], x: Self::Words) -> [Self::Doubles; 2];
    /// All sums, in the window's units: each is a count below 2⁵².
    fn units(self, sums: &[[Self::Doubles; 2]; 4], window: Window) -> u64;

    /// The signs of values whose magnitudes reach a threshold of at least 1, 0 for the others; and how many reach it.
    fn signs(self, x: [Self::Words; 4], threshold: u32) -> (Self::Codes, u32);

    /// The quotients of lanes.
    fn divide_f32(self, x: Self::Words, by: Self::Words) -> Self::Words;
    /// How far numbers are from the nearest integers, without signs; a NaN for what is not finite.
    fn off(self, x: Self::Words) -> Self::Words;
    /// Numbers of steps rounded to the nearest integers, ties to even, and clipped one step beyond the grid's ends or farther
    /// out; a NaN lies below.
    fn round(self, x: Self::Words, grid: &Grid) -> Self::Words;
    /// The codes of rounded steps, how many are not the zero point, and how many the grid's ends clip.
    fn codes(self, steps: [Self::Words; 4], grid: &Grid) -> (Self::Codes, u32, u32);

    /// As many codes less `zero_point`, as f32.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn steps(self, codes: *const i8, zero_point: Self::Words) -> Self::Words;
    /// Writes values past the caches.
    ///
    /// # Safety
    /// All of them can be written; the place lies on the boundary of as many bytes.
    unsafe fn stream_past(self, values: Self::Words, to: *mut f32);

    /// Reads as many bytes as integers.
    ///
    /// # Safety
    /// As for [`Quantizing::load_f16`].
    unsafe fn bytes(self, at: *const u8) -> Self::Words;
    /// What a table of four patterns, which repeat over the vector, has at the two bits of each integer from bit `shift` on.
    fn choose(self, table: Self::Words, codes: Self::Words, shift: u32) -> Self::Words;
    /// `4 · packed + code + 1` of each byte, for bytes of up to six bits and codes from −1 to 1.
    fn pack(self, packed: Self::Codes, codes: Self::Codes) -> Self::Codes;

    /// Patterns whose integers order as the values do: [`tercet_core::number::bits::ordered`].
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
    /// The same past the caches.
    ///
    /// # Safety
    /// All of them can be written; the place lies on the boundary of as many bytes.
    unsafe fn stream_codes(self, codes: Self::Codes, to: *mut i8);

    /// The first values of a slice, which has as many as a vector.
    #[inline(always)]
    fn values<T: Value>(self, from: &[T]) -> Self::Words {
        assert!(from.len() >= self.lanes());
        // SAFETY: as asserted.
        unsafe { T::read(self, from.as_ptr()) }
    }

    /// The codes of a step at the head of a slice, which has as many.
    #[inline(always)]
    fn read_codes(self, from: &[i8]) -> Self::Codes {
        assert!(from.len() >= VECTORS * self.lanes());
        // SAFETY: as asserted.
        unsafe { self.load_codes(from.as_ptr()) }
    }

    /// Writes the codes of a step to the head of a slice, which has as many: where `streaming`, past the caches if the place lies on the
    /// boundary of as many bytes, and a fence is to follow.
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
