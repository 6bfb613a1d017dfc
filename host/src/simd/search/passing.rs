//! Finds the rows of a block that pass a bar.

use tercet_core::search::Bar;

use super::{Dots, Norms};
use crate::simd::vectors::Vectors;

/// Returns a bit for each row that [`Bar::admits`], and, for the cosine, for those with norms of 2³¹ and more, which no
/// rows have.
#[inline(always)]
pub(in crate::simd) fn passing<S: Vectors>(set: S, bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let mut mask = 0;
    for at in (0..dots.len()).step_by(set.lanes()) {
        let (dots, norms) = (set.read(&dots[at..]), set.read(&norms[at..]));
        let lanes = match bar {
            Bar::Open => set.all(),
            Bar::Dot(above) => set.bits(set.exceeds(dots, set.splat(above))),
            Bar::Distance { below, query_norm } => {
                // Unsigned order is signed order with the top bits flipped; here the flip adds as much as it subtracts.
                let flipped = query_norm.cast_signed() ^ i32::MIN;
                let lengths = set.subtract(norms, set.splat(flipped.wrapping_neg()));
                let distances = set.subtract(set.subtract(lengths, dots), dots);
                set.bits(set.exceeds(set.splat(below.cast_signed() ^ i32::MIN), distances))
            }
            Bar::Cosine(square) => {
                // dot · |dot| ≥ norm · square in f32, each operation rounded.
                let x = set.to_f32(dots);
                let magnitudes = set.and(x, set.splat(i32::MAX));
                let bars = set.to_f32(norms);
                let bars = set.multiply_f32(bars, set.splat(square.to_bits().cast_signed()));
                let reached = set.reaches_f32(set.multiply_f32(x, magnitudes), bars);
                set.bits(reached) | set.bits(set.exceeds(set.splat(1), norms))
            }
        };
        mask |= lanes << at;
    }
    mask
}

/// Defines the function of a set.
macro_rules! passing_kernel {
    ($set:ty, $features:literal) => {
        #[target_feature(enable = $features)]
        pub(in crate::simd) fn passing(
            bar: tercet_core::search::Bar,
            dots: &Dots,
            norms: &Norms,
        ) -> u64 {
            $crate::simd::search::passing::passing(<$set>::here(), bar, dots, norms)
        }
    };
}
pub(in crate::simd) use passing_kernel;
