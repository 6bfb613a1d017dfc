//! What the tiles of clustering ask of an instruction set beside its vectors.

use crate::simd::vectors::Vectors;

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

/// How an instruction set that runs here multiplies points, one in each lane of its vectors, by centroids.
pub(in crate::simd) trait Products: Copy {
    /// The set's vectors.
    type Vectors: Vectors;

    /// How products take centroids.
    const FORMAT: Format;

    /// The set's vectors.
    fn vectors(self) -> Self::Vectors;

    /// Four coordinates a lane as products take them: the first [`Format::words`] of the two.
    fn operands(self, coordinates: Words<Self>) -> [Words<Self>; 2];

    /// `sum` + the products of a lane's coordinates, modulo 2³².
    fn product(self, sum: Words<Self>, points: Words<Self>, centroid: Words<Self>) -> Words<Self>;
}

/// The vectors that products are of.
pub(in crate::simd) type Words<S> = <<S as Products>::Vectors as Vectors>::Words;
