//! The exact sum of blocks' products, 16 blocks at a time.

use std::arch::x86_64::*;

/// Blocks at a time.
pub(super) const STEP: usize = 16;

/// Σ scale · 2²⁴ · dot over the blocks; `None` where a scale is not finite. `dots` gives the products of 16 blocks, `at` is
/// where a scale lies in its block.
///
/// A finite f16 times 2²⁴ is an integer of 11 bits times a power of two, below 2⁴⁰, and a block's product is at most 2¹⁹ in
/// magnitude: so a term has at most 31 bits that count, f64 holds it, and 64 bits as an integer. The upper and lower halves
/// of terms add up on their own, for up to 2³¹ steps.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn blocks<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
    at: usize,
    dots: impl Fn(&[[u8; BYTES]; STEP], &[[i8; LEN]; STEP]) -> __m512i,
) -> Option<i128> {
    let exponent = _mm256_set1_epi16(0x7C00);
    let (mut upper, mut lower) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut wide = 0;
    let mut step = |blocks: &[[u8; BYTES]; STEP], x: &[[i8; LEN]; STEP]| {
        let halves = scales(blocks, at);
        // All ones in the exponent: infinity or NaN.
        wide |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(halves, exponent), exponent);
        let scales = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(16_777_216.0));
        let dots = dots(blocks, x);
        let eights = [
            (_mm512_castps512_ps256(scales), _mm512_castsi512_si256(dots)),
            (
                _mm512_extractf32x8_ps::<1>(scales),
                _mm512_extracti64x4_epi64::<1>(dots),
            ),
        ];
        for (scales, dots) in eights {
            let terms = _mm512_mul_pd(_mm512_cvtps_pd(scales), _mm512_cvtepi32_pd(dots));
            let terms = _mm512_cvtpd_epi64(terms);
            upper = _mm512_add_epi64(upper, _mm512_srai_epi64::<32>(terms));
            let low = _mm512_and_si512(terms, _mm512_set1_epi64(0xFFFF_FFFF));
            lower = _mm512_add_epi64(lower, low);
        }
    };
    let (blocks, last) = bytes.as_chunks::<BYTES>().0.as_chunks::<STEP>();
    let (steps, last_x) = x.as_chunks::<LEN>().0.as_chunks::<STEP>();
    for (blocks, x) in blocks.iter().zip(steps) {
        step(blocks, x);
    }
    if !last.is_empty() {
        // Blocks of zeros have a scale of 0.
        let (mut blocks, mut x) = ([[0; BYTES]; STEP], [[0; LEN]; STEP]);
        blocks[..last.len()].copy_from_slice(last);
        x[..last_x.len()].copy_from_slice(last_x);
        step(&blocks, &x);
    }
    if wide != 0 {
        return None;
    }
    let [upper, lower] = [upper, lower].map(|sums| i128::from(_mm512_reduce_add_epi64(sums)));
    Some((upper << 32) + lower)
}

/// The scales as they are stored.
#[inline]
#[target_feature(enable = "avx512f")]
fn scales<const BYTES: usize>(blocks: &[[u8; BYTES]; STEP], at: usize) -> __m256i {
    let half = |block: usize| i16::from_le_bytes([blocks[block][at], blocks[block][at + 1]]);
    _mm256_setr_epi16(
        half(0),
        half(1),
        half(2),
        half(3),
        half(4),
        half(5),
        half(6),
        half(7),
        half(8),
        half(9),
        half(10),
        half(11),
        half(12),
        half(13),
        half(14),
        half(15),
    )
}

/// The sum of each vector's lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn totals(v: [__m512i; 16]) -> __m512i {
    let fours = [
        four([v[0], v[1], v[2], v[3]]),
        four([v[4], v[5], v[6], v[7]]),
        four([v[8], v[9], v[10], v[11]]),
        four([v[12], v[13], v[14], v[15]]),
    ];
    quarters(quarters(fours[0], fours[1]), quarters(fours[2], fours[3]))
}

/// The sum of the lanes of each vector's lower and upper half, in order.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn totals_of_halves(v: [__m512i; 8]) -> __m512i {
    let low = four([v[0], v[1], v[2], v[3]]);
    let high = four([v[4], v[5], v[6], v[7]]);
    // Lower halves of four, their upper halves, and so again.
    let order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    _mm512_permutexvar_epi32(order, quarters(low, high))
}

/// In each quarter of the result, the sums of that quarter's lanes of each vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn four([a, b, c, d]: [__m512i; 4]) -> __m512i {
    let two = |a, b| {
        // a0 + a2, b0 + b2, a1 + a3, b1 + b3.
        _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
    };
    let (ab, cd) = (two(a, b), two(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
}

/// The sums of neighbouring quarters, of `a` and then of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
    )
}
