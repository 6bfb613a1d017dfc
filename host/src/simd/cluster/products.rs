//! The operations that the tiles of clustering need from an instruction set beside its vectors.

use crate::simd::vectors::Vectors;

/// The storage of coordinates in packed words: one lane multiplies a word of 32 bits at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "an architecture has its own formats")]
pub(in crate::simd) enum Format {
    /// Four centroid bytes per word with their sign bit flipped, unsigned: larger by 128.
    Unsigned,
    /// Four centroid bytes per word.
    Signed,
    /// Two words of i16 for four coordinates: the first and third, then the second and fourth.
    Pairs,
    /// Four centroid bytes per word, in [`super::panels::Panels`].
    Tiles,
}

impl Format {
    /// Returns the words for four coordinates.
    pub(in crate::simd) const fn words(self) -> usize {
        match self {
            Self::Unsigned | Self::Signed | Self::Tiles => 1,
            Self::Pairs => 2,
        }
    }
}

/// How a detected instruction set multiplies points, one in each lane of its vectors, by centroids.
pub(in crate::simd) trait Products: Copy {
    /// The set's vectors.
    type Vectors: Vectors;

    /// The format of the centroids.
    const FORMAT: Format;

    /// Returns the set's vectors.
    fn vectors(self) -> Self::Vectors;

    /// Returns four coordinates per lane as operands of products: the first [`Format::words`] of the two.
    fn operands(self, coordinates: Words<Self>) -> [Words<Self>; 2];

    /// Returns `sum` + the products of a lane's coordinates, modulo 2³².
    fn product(self, sum: Words<Self>, points: Words<Self>, centroid: Words<Self>) -> Words<Self>;
}

/// The vectors of the products.
pub(in crate::simd) type Words<S> = <<S as Products>::Vectors as Vectors>::Words;
