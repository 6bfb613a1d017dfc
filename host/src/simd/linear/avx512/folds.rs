//! Sums the lanes of many vectors into one vector.

use std::arch::x86_64::*;

/// Folds four vectors: lane 4·i + r is the sum of lanes 4·i to 4·i + 3 of vector r.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::simd) fn fold_four([a, b, c, d]: [__m512i; 4]) -> __m512i {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
}

/// Combines four folded vectors: lane 4·b + r is the sum of all lanes of vector r of the b-th four.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::simd) fn fold_fours([a, b, c, d]: [__m512i; 4]) -> __m512i {
    let ab = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b01_00_01_00>(a, b),
        _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b),
    );
    let cd = _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b01_00_01_00>(c, d),
        _mm512_shuffle_i32x4::<0b11_10_11_10>(c, d),
    );
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(ab, cd),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(ab, cd),
    )
}
