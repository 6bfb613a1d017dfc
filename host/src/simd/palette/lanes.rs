//! What the loops over palettes ask of an instruction set.

/// Values of a step.
pub(in crate::simd) const STEP: usize = 64;

/// How an instruction set that runs here looks bytes up, [`STEP`] of them at a time.
///
/// Eight indices of B bits fill B bytes, so that a step's indices fill 8·B.
pub(in crate::simd) trait LookUps: Copy {
    /// [`STEP`] bytes.
    type Bytes: Copy;
    /// 256 bytes to look up in.
    type Book: Copy;
    /// Partial sums.
    type Sums: Copy;

    /// Whether [`LookUps::product`] takes entries with their sign bit flipped, unsigned: 128 more than they are.
    const UNSIGNED: bool;

    /// Bytes from a step's first on that are read where its indices are, and written where they go: 8·B or more.
    fn reach(self, bits: usize) -> usize;

    /// Reads the indices of a step, of `BITS` bits; bits above them are left open.
    ///
    /// # Safety
    /// [`LookUps::reach`] can be read, at any alignment.
    unsafe fn unpack<const BITS: usize>(self, from: *const u8) -> Self::Bytes;

    /// Writes the indices of a step, which are below 2^`BITS`; what follows on the indices is left open.
    ///
    /// # Safety
    /// [`LookUps::reach`] can be written, at any alignment.
    unsafe fn pack<const BITS: usize>(self, indices: Self::Bytes, to: *mut u8);

    /// Bytes of a step.
    fn load(self, from: &[i8; STEP]) -> Self::Bytes;

    /// A book of 256 bytes.
    fn book(self, from: &[u8; 256]) -> Self::Book;

    /// The byte of a book at each index; `BITS` bits of it count, and the book repeats after 2^`BITS` entries.
    fn look_up<const BITS: usize>(self, book: &Self::Book, indices: Self::Bytes) -> Self::Bytes;

    /// Writes signed entries times a scale.
    fn scaled(self, entries: Self::Bytes, scale: f32, to: &mut [f32; STEP]);

    /// No sum.
    fn zero(self) -> Self::Sums;

    /// Adds the products of a step's entries with int8 activations; modulo 2³².
    fn product(self, sums: Self::Sums, entries: Self::Bytes, x: &[i8; STEP]) -> Self::Sums;

    /// Everything that was added, modulo 2³².
    fn total(self, sums: Self::Sums) -> i32;
}
