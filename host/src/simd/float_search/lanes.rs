//! The operations that the sums of float search need from an instruction set beside its vectors.

use tercet_core::number::Element;
use tercet_core::{bf16, f16};

use crate::simd::quantize::lanes::Quantizing;

/// Operations of a detected set that sums over rows of floats need beside those of quantizers.
///
/// Functions with places use the lowest bits, as many as the vector has lanes.
pub(in crate::simd) trait FloatSums: Quantizing {
    /// True if values outside the places are not read.
    const PARTIAL: bool;

    /// Reads a vector; values outside the places are unspecified.
    ///
    /// # Safety
    /// All of it can be read, or, if [`FloatSums::PARTIAL`], the values in the places; the same holds for the other
    /// types.
    #[inline(always)]
    unsafe fn read_f32(self, at: *const f32, places: u64) -> Self::Words {
        let _ = places;
        // SAFETY: the caller's promise.
        unsafe { self.load(at.cast()) }
    }

    /// The same, widened.
    ///
    /// # Safety
    /// As for [`FloatSums::read_f32`].
    #[inline(always)]
    unsafe fn read_f16(self, at: *const f16, places: u64) -> Self::Words {
        let _ = places;
        // SAFETY: the caller's promise.
        unsafe { self.load_f16(at) }
    }

    /// The same, widened.
    ///
    /// # Safety
    /// As for [`FloatSums::read_f32`].
    #[inline(always)]
    unsafe fn read_bf16(self, at: *const bf16, places: u64) -> Self::Words {
        let _ = places;
        // SAFETY: the caller's promise.
        unsafe { self.load_bf16(at) }
    }

    /// Returns the lanes of `new` in the places, and the others of `old`.
    fn take(self, places: u64, new: Self::Words, old: Self::Words) -> Self::Words;
    /// Returns lane 0 after halving.
    fn halved(self, x: Self::Words) -> f32;

    /// Returns the lower lanes and the upper ones.
    fn doubles(self, x: Self::Words) -> [Self::Doubles; 2];
    /// Returns sum + a · b, rounded once.
    fn add_product_f64(
        self,
        sum: Self::Doubles,
        a: Self::Doubles,
        b: Self::Doubles,
    ) -> Self::Doubles;
    /// Returns the lanes of `new` in the places, and the others of `old`.
    fn take_f64(self, places: u64, new: Self::Doubles, old: Self::Doubles) -> Self::Doubles;
    /// Returns lane 0 after halving.
    fn halved_f64(self, x: Self::Doubles) -> f64;
}

/// A type of rows, as vectors of patterns.
pub(in crate::simd) trait Row: Element {
    /// Reads a vector.
    ///
    /// # Safety
    /// As [`FloatSums::read_f32`].
    unsafe fn read<S: FloatSums>(set: S, at: *const Self, places: u64) -> S::Words;
}

impl Row for f32 {
    #[inline(always)]
    unsafe fn read<S: FloatSums>(set: S, at: *const Self, places: u64) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.read_f32(at, places) }
    }
}

impl Row for f16 {
    #[inline(always)]
    unsafe fn read<S: FloatSums>(set: S, at: *const Self, places: u64) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.read_f16(at, places) }
    }
}

impl Row for bf16 {
    #[inline(always)]
    unsafe fn read<S: FloatSums>(set: S, at: *const Self, places: u64) -> S::Words {
        // SAFETY: the caller's promise.
        unsafe { set.read_bf16(at, places) }
    }
}
