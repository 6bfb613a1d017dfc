//! Which rows of a block pass a bar.

use tercet_core::search::Bar;

use super::{Dots, Norms};

/// What the comparison with a bar asks of an instruction set.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; [`Compare::load`] reads a vector at any
/// alignment.
pub(in crate::simd) trait Compare {
    /// [`Compare::WIDTH`] lanes of 32 bits.
    type Vector: Copy;

    /// Lanes of a vector: a divisor of 64.
    const WIDTH: usize;

    /// Reads a vector.
    unsafe fn load(from: *const i32) -> Self::Vector;
    /// `value` in every lane.
    unsafe fn splat(value: i32) -> Self::Vector;
    /// a − b, modulo 2³².
    unsafe fn subtract(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// A bit for each lane, the lowest first: whether a > b, with signs.
    unsafe fn exceeds(a: Self::Vector, b: Self::Vector) -> u64;
    /// The same: whether dot · |dot| ≥ norm · square in f32, each operation rounded.
    unsafe fn reaches(dots: Self::Vector, norms: Self::Vector, square: f32) -> u64;
}

/// A row for each that [`Bar::admits`], and, by cosine, for those with norms of 2³¹ and more, which no rows have.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn passing<S: Compare>(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let mut mask = 0;
    for at in (0..dots.len()).step_by(S::WIDTH) {
        // SAFETY: the set runs here; a vector of each lies there.
        let lanes = unsafe {
            let dots = S::load(dots[at..].as_ptr());
            let norms = S::load(norms[at..].as_ptr().cast());
            match bar {
                Bar::Open => u64::MAX >> (64 - S::WIDTH),
                Bar::Dot(above) => S::exceeds(dots, S::splat(above)),
                Bar::Distance { below, query_norm } => {
                    // Unsigned order is signed order with the top bits flipped, which adds as much as it takes away.
                    let flipped = query_norm.cast_signed() ^ i32::MIN;
                    let lengths = S::subtract(norms, S::splat(flipped.wrapping_neg()));
                    let distances = S::subtract(S::subtract(lengths, dots), dots);
                    S::exceeds(S::splat(below.cast_signed() ^ i32::MIN), distances)
                }
                Bar::Cosine(square) => {
                    S::reaches(dots, norms, square) | S::exceeds(S::splat(1), norms)
                }
            }
        };
        mask |= lanes << at;
    }
    mask
}

/// The function of a set.
macro_rules! passing_kernel {
    ($lanes:ty, $features:literal) => {
        #[target_feature(enable = $features)]
        pub(in crate::simd) fn passing(
            bar: tercet_core::search::Bar,
            dots: &Dots,
            norms: &Norms,
        ) -> u64 {
            // SAFETY: the set runs where this function may be called.
            unsafe { $crate::simd::search::passing::passing::<$lanes>(bar, dots, norms) }
        }
    };
}
pub(in crate::simd) use passing_kernel;
