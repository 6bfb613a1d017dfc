//! The operations that the loops over palettes need from an instruction set.

/// Values per step.
pub(in crate::simd) const STEP: usize = 64;

/// How a detected instruction set looks up bytes, [`STEP`] of them at a time.
///
/// Eight indices of B bits fill B bytes, so a step's indices fill 8·B.
pub(in crate::simd) trait LookUps: Copy {
    /// [`STEP`] bytes.
    type Bytes: Copy;
    /// A table of 256 bytes.
    type Book: Copy;
    /// Partial sums.
    type Sums: Copy;

    /// True if [`LookUps::product`] uses entries with their sign bit flipped, unsigned: larger by 128.
    const UNSIGNED: bool;

    /// Returns the number of bytes from a step's first on that are read for its indices, or written: 8·B or more.
    fn reach(self, bits: usize) -> usize;

    /// Reads the indices of a step, of `BITS` bits; the bits above them are unspecified.
    ///
    /// # Safety
    /// [`LookUps::reach`] can be read, at any alignment.
    unsafe fn unpack<const BITS: usize>(self, from: *const u8) -> Self::Bytes;

    /// Writes the indices of a step, which are below 2^`BITS`; the bytes after the indices are unspecified.
    ///
    /// # Safety
    /// [`LookUps::reach`] can be written, at any alignment.
    unsafe fn pack<const BITS: usize>(self, indices: Self::Bytes, to: *mut u8);

    /// Loads the bytes of a step.
    fn load(self, from: &[i8; STEP]) -> Self::Bytes;

    /// Loads a table of 256 bytes.
    fn book(self, from: &[u8; 256]) -> Self::Book;

    /// Returns the byte of a table at each index; `BITS` bits of it count, and the table repeats after 2^`BITS`
    /// entries.
    fn look_up<const BITS: usize>(self, book: &Self::Book, indices: Self::Bytes) -> Self::Bytes;

    /// Writes signed entries times a scale.
    fn scaled(self, entries: Self::Bytes, scale: f32, to: &mut [f32; STEP]);

    /// Returns a sum of 0.
    fn zero(self) -> Self::Sums;

    /// Adds the products of a step's entries with int8 activations; modulo 2³².
    fn product(self, sums: Self::Sums, entries: Self::Bytes, x: &[i8; STEP]) -> Self::Sums;

    /// Returns the total of all additions, modulo 2³².
    fn total(self, sums: Self::Sums) -> i32;
}
