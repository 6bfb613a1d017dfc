//! One vocabulary of vectors, for the loops that instruction sets share.
//!
//! A loop takes a set as a value and asks it for what it does to vectors. The value is a proof: `here` makes it, which is compiled for the set,
//! so that safe code calls it only in functions that are compiled for the set as well, and those are called where it was found to run.
//! Therefore operations on values are safe; what is left to argue for are addresses.
//!
//! How many lanes a vector has is asked for, and not a constant: a set may have vectors of a length that its processor decides.

/// What a loop may read and write as lanes of 32 bits.
pub(in crate::simd) trait Word: Copy {}

impl Word for f32 {}
impl Word for i32 {}
impl Word for u32 {}

/// Vectors of an instruction set that runs here, in lanes of 32 bits: integers, or the patterns of f32.
pub(in crate::simd) trait Vectors: Copy {
    /// A vector.
    type Words: Copy;
    /// Yes or no for each lane.
    type Mask: Copy;

    /// Lanes of a vector: a divisor of 64, the same at each call.
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
    /// A byte a lane can be written, at any alignment.
    unsafe fn store_bytes(self, words: Self::Words, to: *mut u8);
    /// Reads 16 bytes from each of as many rows as there are lanes, which begin `stride` bytes after one another; vector g holds bytes
    /// 4g to 4g + 3 of each row.
    ///
    /// # Safety
    /// All of them can be read.
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [Self::Words; 4];

    /// `value` in every lane.
    fn splat(self, value: i32) -> Self::Words;
    /// a + b, modulo 2³².
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// a − b, modulo 2³².
    fn subtract(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// The larger of each pair, with signs.
    fn max(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// The bits that both have.
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Lanes without signs by two, rounded down.
    fn half(self, words: Self::Words) -> Self::Words;

    /// Whether a > b, with signs.
    fn exceeds(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    /// Whether a = b.
    fn equals(self, a: Self::Words, b: Self::Words) -> Self::Mask;
    /// The lane of a for yes, of b for no.
    fn select(self, mask: Self::Mask, a: Self::Words, b: Self::Words) -> Self::Words;
    /// A bit for each lane, the lowest first: 1 for yes.
    fn bits(self, mask: Self::Mask) -> u64;

    /// Integers with signs as f32, rounded to the nearest.
    fn to_f32(self, integers: Self::Words) -> Self::Words;
    /// The products of f32.
    fn multiply_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// a + b, as f32.
    fn add_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// a − b, as f32.
    fn subtract_f32(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// f32 within the range of integers with signs, rounded towards zero.
    fn truncate(self, x: Self::Words) -> Self::Words;
    /// Whether a ≥ b, as f32; no where one is a NaN.
    fn reaches_f32(self, a: Self::Words, b: Self::Words) -> Self::Mask;

    /// The bits of a word in every lane.
    #[inline(always)]
    fn pattern(self, bits: u32) -> Self::Words {
        self.splat(bits.cast_signed())
    }

    /// Whether any lane of a is greater than b's, with signs.
    #[inline(always)]
    fn any_exceeds(self, a: Self::Words, b: Self::Words) -> bool {
        self.bits(self.exceeds(a, b)) != 0
    }

    /// A bit for each lane, all of them.
    #[inline(always)]
    fn all(self) -> u64 {
        u64::MAX >> (64 - self.lanes())
    }

    /// The first lanes of a slice, which has as many.
    #[inline(always)]
    fn read<W: Word>(self, from: &[W]) -> Self::Words {
        assert!(from.len() >= self.lanes());
        // SAFETY: as asserted; words are 32 bits, of any pattern.
        unsafe { self.load(from.as_ptr().cast()) }
    }

    /// Writes the lowest byte of each lane to the head of a slice, which has as many.
    #[inline(always)]
    fn write_bytes(self, words: Self::Words, to: &mut [u8]) {
        assert!(to.len() >= self.lanes());
        // SAFETY: as asserted.
        unsafe { self.store_bytes(words, to.as_mut_ptr()) }
    }

    /// Writes the first lanes of a slice, which has as many.
    #[inline(always)]
    fn write<W: Word>(self, words: Self::Words, to: &mut [W]) {
        assert!(to.len() >= self.lanes());
        // SAFETY: as asserted; words are 32 bits, of any pattern.
        unsafe { self.store(words, to.as_mut_ptr().cast()) }
    }
}

/// Vectors of f64, of half as many lanes.
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

    /// `value` in every lane.
    fn splat_f64(self, value: f64) -> Self::Doubles;
    /// a + b.
    fn add_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// a − b.
    fn subtract_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// a · b.
    fn multiply_f64(self, a: Self::Doubles, b: Self::Doubles) -> Self::Doubles;
    /// The larger of `most` and the magnitude of `x`; either of them where one is a NaN.
    fn larger_f64(self, most: Self::Doubles, x: Self::Doubles) -> Self::Doubles;
}

/// Methods of a set's value: intrinsics on vectors, which write no memory and read none but constants.
macro_rules! operations {
    ($($(#[$about:meta])* fn $name:ident($self:ident $(, $value:ident: $type:ty)*) -> $result:ty $body:block)*) => {$(
        $(#[$about])*
        #[inline(always)]
        fn $name($self $(, $value: $type)*) -> $result {
            #[allow(unused_unsafe, reason = "some do nothing")]
            // SAFETY: the value is made only where the set runs; of memory, constants alone are read.
            unsafe { $body }
        }
    )*};
}
pub(in crate::simd) use operations;
