//! What the tiles of clustering ask of an instruction set.

/// How packed words hold coordinates: a word of 32 bits is what one lane multiplies at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "an architecture has its own formats")]
pub(in crate::simd) enum Format {
    /// Four centroid bytes a word with their sign bit flipped, unsigned: 128 more than they are.
    Unsigned,
    /// Four centroid bytes a word.
    Signed,
    /// Two words of i16 for four coordinates: the first and third, then the second and fourth.
    Pairs,
    /// Four centroid bytes a word, in [`super::panels::Panels`].
    Tiles,
}

impl Format {
    /// Words of four coordinates.
    pub(in crate::simd) const fn words(self) -> usize {
        match self {
            Self::Unsigned | Self::Signed | Self::Tiles => 1,
            Self::Pairs => 2,
        }
    }
}

/// Vectors of i32 lanes, a point in each.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; pointers must be valid for what the
/// function says that it reads or writes, at any alignment.
pub(in crate::simd) trait Lanes {
    /// A vector of [`Lanes::WIDTH`] lanes.
    type Vector: Copy;

    /// Lanes of a vector, a divisor of 64.
    const WIDTH: usize;

    /// How products take centroids.
    const FORMAT: Format;

    /// `value` in every lane.
    unsafe fn splat(value: i32) -> Self::Vector;

    /// Reads a vector.
    unsafe fn load(from: *const i32) -> Self::Vector;

    /// Writes a vector.
    unsafe fn store(vector: Self::Vector, to: *mut i32);

    /// Reads 16 bytes from each of [`Lanes::WIDTH`] rows that begin `stride` bytes after one another; vector g holds bytes
    /// 4g to 4g + 3 of each row.
    unsafe fn turn(rows: *const i8, stride: usize) -> [Self::Vector; 4];

    /// Asks for the line of cache around an address, which need not be readable.
    unsafe fn prefetch(at: *const i8);

    /// Four coordinates a lane as products take them: the first [`Format::words`] of the two.
    unsafe fn operands(coordinates: Self::Vector) -> [Self::Vector; 2];

    /// `sum` + the products of a lane's coordinates, modulo 2³².
    unsafe fn product(
        sum: Self::Vector,
        points: Self::Vector,
        centroid: Self::Vector,
    ) -> Self::Vector;

    /// (`sum`, `tag`) in the lanes where `sum` is greater than `best.0`, and `best` in the others.
    unsafe fn better(
        best: (Self::Vector, Self::Vector),
        sum: Self::Vector,
        tag: Self::Vector,
    ) -> (Self::Vector, Self::Vector);

    /// A bit for each lane, the lowest first: whether the two differ.
    unsafe fn differ(a: Self::Vector, b: Self::Vector) -> u64;

    /// The label `tag` / 2 and the distance `length` − 2·`best` + `tag` mod 2, modulo 2³².
    unsafe fn found(
        length: Self::Vector,
        best: Self::Vector,
        tag: Self::Vector,
    ) -> (Self::Vector, Self::Vector);

    /// Adds 32 bytes of a row to 32 sums, modulo 2¹⁶.
    unsafe fn add(sums: &mut [i16; 32], row: *const i8);

    /// Subtracts 32 bytes of a row from 32 sums, modulo 2¹⁶.
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8);
}
