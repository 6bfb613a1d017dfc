//! Sums the lanes of vectors.

use std::arch::x86_64::*;

/// Folds four vectors: lane 4·i + r is the sum of lanes 4·i to 4·i + 3 of vector r.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn fold_four([a, b, c, d]: [__m256i; 4]) -> __m256i {
    let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd))
}

/// Folds eight vectors: lane r is the sum of all lanes of vector r.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn fold_eight([a, b, c, d, e, f, g, h]: [__m256i; 8]) -> __m256i {
    let (first, second) = (fold_four([a, b, c, d]), fold_four([e, f, g, h]));
    _mm256_add_epi32(
        _mm256_permute2x128_si256::<0x20>(first, second),
        _mm256_permute2x128_si256::<0x31>(first, second),
    )
}

/// Returns the four sums of a folded vector: of its lanes r and r + 4.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn four_sums(folded: __m256i) -> __m128i {
    _mm_add_epi32(
        _mm256_castsi256_si128(folded),
        _mm256_extracti128_si256::<1>(folded),
    )
}

/// Stores four sums, or as many as there is room for.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_four(sums: __m128i, out: &mut [i32]) {
    let mut four = [0; 4];
    // SAFETY: four sums fit there.
    unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), sums) };
    for (out, sum) in out.iter_mut().zip(four) {
        *out = sum;
    }
}
