//! What the quantizers' loops ask of an instruction set.

use tercet_core::number::Element;
use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use crate::simd::exact::Window;

/// Vectors of f32 values, taken as their 32-bit patterns. A step of the loops is four of them.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; pointers must be valid for a vector's
/// values, or a step's codes, at any alignment unless the function says otherwise.
pub(in crate::simd) trait Lanes {
    /// [`Lanes::WIDTH`] patterns.
    type Vector: Copy;
    /// Half as many f64 sums.
    type Wide: Copy;
    /// The codes of a step.
    type Codes: Copy;

    /// Lanes of a vector: a divisor of 16.
    const WIDTH: usize;

    /// Reads a vector of values.
    unsafe fn f32(at: *const f32) -> Self::Vector;
    /// Reads and widens as many halves.
    unsafe fn f16(at: *const f16) -> Self::Vector;
    /// Reads and widens as many halves.
    unsafe fn bf16(at: *const bf16) -> Self::Vector;
    /// `pattern` in every lane.
    unsafe fn splat(pattern: u32) -> Self::Vector;

    /// The larger patterns of each pair, as unsigned and as signed integers.
    unsafe fn larger(most: [Self::Vector; 2], x: Self::Vector) -> [Self::Vector; 2];
    /// The smaller patterns of each pair, as unsigned and as signed integers.
    unsafe fn smaller(least: [Self::Vector; 2], x: Self::Vector) -> [Self::Vector; 2];
    /// The largest lane of the first as unsigned, and of the second as signed integers.
    unsafe fn largest(most: [Self::Vector; 2]) -> (u32, i32);
    /// The smallest lane of the first as unsigned, and of the second as signed integers.
    unsafe fn smallest(least: [Self::Vector; 2]) -> (u32, i32);

    /// The magnitudes of lanes where they lie in `from..=to`, 0 in the others.
    unsafe fn within(x: Self::Vector, from: Self::Vector, to: Self::Vector) -> Self::Vector;
    /// Sums of nothing.
    unsafe fn no_sums() -> [Self::Wide; 2];
    /// Adds the magnitudes of a vector; signs are not looked at. See [`crate::simd::exact`].
    unsafe fn add(sums: [Self::Wide; 2], x: Self::Vector) -> [Self::Wide; 2];
    /// All sums, in the window's units: each is a count below 2⁵².
    unsafe fn units(sums: &[[Self::Wide; 2]; 4], window: Window) -> u64;

    /// The signs of values whose magnitudes reach a threshold of at least 1, 0 for the others; and how many reach it.
    unsafe fn signs(x: [Self::Vector; 4], threshold: u32) -> (Self::Codes, u32);

    /// The products of lanes.
    unsafe fn multiply(x: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// The quotients of lanes.
    unsafe fn divide(x: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// How far numbers are from the nearest integers, without signs; a NaN for what is not finite.
    unsafe fn off(x: Self::Vector) -> Self::Vector;
    /// Whether a pattern, as a signed integer, is greater than the other's.
    unsafe fn exceeds(x: Self::Vector, limit: Self::Vector) -> bool;
    /// Numbers of steps rounded to the nearest integers, ties to even, and clipped one step beyond the grid's ends or farther
    /// out; a NaN lies below.
    unsafe fn round(x: Self::Vector, grid: &Grid) -> Self::Vector;
    /// The codes of rounded steps, how many are not the zero point, and how many the grid's ends clip.
    unsafe fn codes(steps: [Self::Vector; 4], grid: &Grid) -> (Self::Codes, u32, u32);

    /// As many codes less `zero_point`, as f32.
    unsafe fn steps(codes: *const i8, zero_point: Self::Vector) -> Self::Vector;
    /// Writes values.
    unsafe fn store_values(values: Self::Vector, to: *mut f32);
    /// The same past the caches, for a place on the boundary of as many bytes.
    unsafe fn stream_values(values: Self::Vector, to: *mut f32);

    /// Reads as many bytes as integers.
    unsafe fn bytes(at: *const u8) -> Self::Vector;
    /// What a table of four patterns, which repeat over the vector, has at the two bits of each integer from bit `shift` on.
    unsafe fn choose(table: Self::Vector, codes: Self::Vector, shift: u32) -> Self::Vector;
    /// `4 · packed + code + 1` of each byte, for bytes of up to six bits and codes from −1 to 1.
    unsafe fn pack(packed: Self::Codes, codes: Self::Codes) -> Self::Codes;

    /// Patterns whose integers order as the values do: [`tercet_core::number::bits::ordered`].
    unsafe fn ordered(x: Self::Vector) -> Self::Vector;
    /// Writes the upper halves of a step's patterns, in order.
    unsafe fn store_tops(x: [Self::Vector; 4], to: *mut u16);

    /// Reads the codes of a step.
    unsafe fn load(from: *const i8) -> Self::Codes;
    /// Writes the codes of a step.
    unsafe fn store(codes: Self::Codes, to: *mut i8);
    /// The same past the caches, for a place on the boundary of as many bytes.
    unsafe fn stream(codes: Self::Codes, to: *mut i8);
}

/// The three types of values, read through [`Lanes`].
pub(in crate::simd) trait Value: Element {
    /// Reads a vector.
    ///
    /// # Safety
    /// As [`Lanes`] says.
    unsafe fn read<S: Lanes>(at: *const Self) -> S::Vector;
}

impl Value for f32 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::f32(at) }
    }
}

impl Value for f16 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::f16(at) }
    }
}

impl Value for bf16 {
    #[inline(always)]
    unsafe fn read<S: Lanes>(at: *const Self) -> S::Vector {
        // SAFETY: the caller's promise.
        unsafe { S::bf16(at) }
    }
}
