//! What the sums of float search ask of an instruction set.

use tercet_core::number::Element;
use tercet_core::{bf16, f16};

use crate::simd::quantize::lanes::Lanes as Values;

/// Vectors of f32 as [`Values`] has them, patterns of 32 bits, and of half as many f64.
///
/// Functions that take a set of places look at its lowest bits, as many as the vector has lanes.
///
/// # Safety
/// As for [`Values`]; where [`Lanes::PARTIAL`], values that are not of a set need not be readable.
pub(in crate::simd) trait Lanes: Values {
    /// Whether values that are not of a set are not read.
    const PARTIAL: bool;

    /// Reads a vector; what is not of the set is left open.
    #[inline(always)]
    unsafe fn read_f32(at: *const f32, set: u64) -> Self::Vector {
        let _ = set;
        // SAFETY: the caller's promise.
        unsafe { Self::f32(at) }
    }

    /// The same, widened.
    #[inline(always)]
    unsafe fn read_f16(at: *const f16, set: u64) -> Self::Vector {
        let _ = set;
        // SAFETY: the caller's promise.
        unsafe { Self::f16(at) }
    }

    /// The same, widened.
    #[inline(always)]
    unsafe fn read_bf16(at: *const bf16, set: u64) -> Self::Vector {
        let _ = set;
        // SAFETY: the caller's promise.
        unsafe { Self::bf16(at) }
    }

    /// The sums of lanes.
    unsafe fn plus(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The differences of lanes.
    unsafe fn minus(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lanes of `new` that are of the set, and the others of `old`.
    unsafe fn select(set: u64, new: Self::Vector, old: Self::Vector) -> Self::Vector;
    /// Lane 0 after halving.
    unsafe fn halved(x: Self::Vector) -> f32;

    /// −0 in every lane.
    unsafe fn no_products() -> Self::Wide;
    /// The lower lanes and the upper ones.
    unsafe fn doubles(x: Self::Vector) -> [Self::Wide; 2];
    /// sum + a · b, rounded once.
    unsafe fn plus_product(sum: Self::Wide, a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The sums of lanes.
    unsafe fn plus_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The lanes of `new` that are of the set, and the others of `old`.
    unsafe fn select_wide(set: u64, new: Self::Wide, old: Self::Wide) -> Self::Wide;
    /// Lane 0 after halving.
    unsafe fn halved_wide(x: Self::Wide) -> f64;

    /// Asks for the line of cache around an address, which need not be readable.
    unsafe fn prefetch(at: *const i8);
}

/// A type of rows, read through [`Lanes`].
pub(in crate::simd) trait Row: Element {
    /// Reads a vector.
    ///
    /// # Safety
    /// As [`Lanes`] says.
    unsafe fn read<S: Lanes>(at: *const Self, set: u64) -> S::Vector;
}

impl Row for f32 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self, set: u64) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::read_f32(at, set) }
    }
}

impl Row for f16 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self, set: u64) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::read_f16(at, set) }
    }
}

impl Row for bf16 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self, set: u64) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::read_bf16(at, set) }
    }
}
