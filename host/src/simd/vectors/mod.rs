//! A common interface of vectors, for the loops that instruction sets share.
//!
//! A loop takes a set as a value and calls its vector operations. The value is a proof: it is made by `here`, which is
//! compiled for the set, so safe code can call it only in functions that are compiled for the set too, and those are
//! called only if the set was detected. Therefore operations on values are safe, and only addresses need safety
//! arguments.
//!
//! The number of lanes of a vector is a function and not a constant: a set may have vectors with a length that its
//! processor decides.

/// A type that a loop may read and write as lanes of 32 bits.
pub(in crate::simd) trait Word: Copy {}

impl Word for f32 {}
impl Word for i32 {}
impl Word for u32 {}

/// Vectors of a detected instruction set, in lanes of 32 bits: integers, or the patterns of f32.
pub(in crate::simd) trait Vectors: Copy {
    /// A vector.
    type Words: Copy;
    /// Yes or no for each lane.
    type Mask: Copy;

    /// Returns the number of lanes: a divisor of 64, the same at each call.
    fn lanes(self) -> usize;

    /// Reads a vector.
    ///
    /// # Safety
    /// All of it can be read, at any alignment.
    unsafe fn load(self, from: *const i32) -> Self::Words;
    /// Writes a vector.
    ///
    /// # Safety
    /// All of it can be written, at any alignment.
    unsafe fn store(self, words: Self::Words, to: *mut i32);
    /// Writes the lowest byte of each lane.
    ///
    /// # Safety
    /// One byte per lane can be written, at any alignment.
    unsafe fn store_bytes(self, words: Self::Words, to: *mut u8);
    /// Reads 16 bytes from each of as many rows as there are lanes; the rows begin `stride` bytes apart. Vector g holds
    /// bytes 4g to 4g + 3 of each row.
    ///
    /// # Safety
    /// All of them can be read.
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [Self::Words; 4];

    /// Returns `value` in every lane.
    fn splat(self, value: i32) -> Self::Words;
    /// Returns a + b, modulo 2³².
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns a − b, modulo 2³².
    fn subtract(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns the larger of each pair, signed.
    fn max(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns the bits that both have.
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns unsigned lanes divided by two, rounded down.
    fn half(self, words: Self::Words) -> Self::Words;

    /// Tests a > b, signed.
    fn exceeds(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    /// Tests a = b.
    fn equals(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    /// Returns the lane of a for yes, of b for no.
    fn select(self, mask: Self::Mask, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns a bit for each lane, the lowest first: 1 for yes.
    fn bits(self, mask: Self::Mask) -> u64;

    /// Converts signed integers to f32, rounded to the nearest.
    fn to_f32(self, integers: Self::Words) -> Self::Words;
    /// Returns the products of f32.
    fn multiply_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns a + b, as f32.
    fn add_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Returns a − b, as f32.
    fn subtract_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Rounds f32 within the range of signed integers towards zero.
    fn truncate(self, x: Self::Words) -> Self::Words;
    /// Tests a ≥ b, as f32; no if one is NaN.
    fn reaches_f32(self, a: Self::Words, b: Self::Words) -> Self::Mask;

    /// Returns the bits of a word in every lane.
    #[inline(always)]
    fn pattern(self, bits: u32) -> Self::Words {
        self.splat(bits.cast_signed())
    }

    /// True if any lane of a is greater than b's, signed.
    #[inline(always)]
    fn any_exceeds(self, a: Self::Words, b: Self::Words) -> bool {
        self.bits(self.exceeds(a, b)) != 0
    }

    /// Returns a bit for each lane, all set.
    #[inline(always)]
    fn all(self) -> u64 {
        u64::MAX >> (64 - self.lanes())
    }

    /// Reads the first lanes of a slice, which has at least as many.
    #[inline(always)]
    fn read<W: Word>(self, from: &[W]) -> Self::Words {
        assert!(from.len() >= self.lanes());
        // SAFETY: as asserted; words are 32 bits, of any pattern.
        unsafe { self.load(from.as_ptr().cast()) }
    }

    /// Writes the lowest byte of each lane to the beginning of a slice, which has at least as many.
    #[inline(always)]
    fn write_bytes(self, words: Self::Words, to: &mut [u8]) {
        assert!(to.len() >= self.lanes());
        // SAFETY: as asserted.
        unsafe { self.store_bytes(words, to.as_mut_ptr()) }
    }

    /// Writes the first lanes of a slice, which has at least as many.
    #[inline(always)]
    fn write<W: Word>(self, words: Self::Words, to: &mut [W]) {
        assert!(to.len() >= self.lanes());
        // SAFETY: as asserted; words are 32 bits, of any pattern.
        unsafe { self.store(words, to.as_mut_ptr().cast()) }
    }
}

/// Vectors of f64, with half as many lanes.
pub(in crate::simd) trait Doubles: Vectors {
    /// A vector.
    type Doubles: Copy;

    /// Reads and widens as many f32.
    ///
    /// # Safety
    /// All of them can be read, at any alignment.
    unsafe fn widen(self, from: *const f32) -> Self::Doubles;
    /// Reads a vector.
    ///
    /// # Safety
    /// All of it can be read, at any alignment.
    unsafe fn load_f64(self, from: *const f64) -> Self::Doubles;
    /// Writes a vector.
    ///
    /// # Safety
    /// All of it can be written, at any alignment.
    unsafe fn store_f64(self, x: Self::Doubles, to: *mut f64);

    /// Returns `value` in every lane.
    fn splat_f64(self, value: f64) -> Self::Doubles;
    /// Returns a + b.
    fn add_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// Returns a − b.
    fn subtract_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// Returns a · b.
    fn multiply_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// Returns the larger of `most` and the magnitude of `x`; either of them if one is NaN.
    fn larger_f64(self, most: Self::Doubles, x: Self::Doubles) -> Self::Doubles;
}

/// Defines methods of a set's value: intrinsics on vectors, which write no memory and read only constants.
macro_rules! operations {
    ($($(#[$about:meta])* fn $name:ident($self:ident $(, $value:ident: $type:ty)*) -> $result:ty $body:block)*) => {$(
        $(#[$about])*
        #[inline(always)]
        fn $name($self $(, $value: $type)*) -> $result {
            #[allow(unused_unsafe, reason = "some do nothing")]
            // SAFETY: the value is made only where the set runs; the only memory that is read is constants.
            unsafe { $body }
        }
    )*};
}
pub(in crate::simd) use operations;
