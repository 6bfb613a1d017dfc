//! What the loops over palettes ask of an instruction set.

/// Values of a step.
pub(in crate::simd) const STEP: usize = 64;

/// Vectors of bytes, [`STEP`] of them at a time.
///
/// Eight indices of B bits fill B bytes, so that a step's indices fill 8·B.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; pointers must be valid for what the
/// function says that it reads or writes, at any alignment.
pub(in crate::simd) trait Lanes {
    /// [`STEP`] bytes.
    type Bytes: Copy;
    /// 256 bytes to look up in.
    type Book: Copy;
    /// Partial sums.
    type Sums: Copy;

    /// Whether [`Lanes::product`] takes entries with their sign bit flipped, unsigned: 128 more than they are.
    const UNSIGNED: bool;

    /// Bytes from a step's first on that are read where its indices are, and written where they go: 8·B or more.
    fn reach(bits: usize) -> usize;

    /// Reads [`STEP`] bytes.
    unsafe fn load(from: *const u8) -> Self::Bytes;

    /// Reads the indices of a step, of `BITS` bits; bits above them are left open. Reads [`Lanes::reach`].
    unsafe fn unpack<const BITS: usize>(from: *const u8) -> Self::Bytes;

    /// Writes the indices of a step, which are below 2^`BITS`. Writes [`Lanes::reach`], of which what follows on the
    /// indices is left open.
    unsafe fn pack<const BITS: usize>(indices: Self::Bytes, to: *mut u8);

    /// Reads a book of 256 bytes.
    unsafe fn book(from: &[u8; 256]) -> Self::Book;

    /// The byte of a book at each index; `BITS` bits of it count, and the book repeats after 2^`BITS` entries.
    unsafe fn look_up<const BITS: usize>(book: &Self::Book, indices: Self::Bytes) -> Self::Bytes;

    /// Writes [`STEP`] signed entries times a scale.
    unsafe fn scaled(entries: Self::Bytes, scale: f32, to: *mut f32);

    /// No sum.
    unsafe fn zero() -> Self::Sums;

    /// Adds the products of a step's entries with int8 activations, of which [`STEP`] are read; modulo 2³².
    unsafe fn product(sums: Self::Sums, entries: Self::Bytes, x: *const i8) -> Self::Sums;

    /// Everything that was added, modulo 2³².
    unsafe fn total(sums: Self::Sums) -> i32;
}
