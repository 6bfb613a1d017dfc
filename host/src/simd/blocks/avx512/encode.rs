//! Q8_0 and Q4_0, 16 blocks of 32 values at a time, so that their scales fill one vector.

use std::arch::x86_64::*;

use super::{load, store_bytes};
use crate::simd::Ahead;

/// Blocks at a time.
const STEP: usize = 16;

/// Encodes blocks up to the first step with one that is not ordinary, and returns their number.
///
/// `fl(x / d)` away from zero: |x·id| < 127.1, and to such a number p the largest float below ½ is added. For p = n + ½
/// the sum n + 1 − 2⁻²⁵ rounds to n + 1; for the float before it, p is 2⁻²⁵ or more below, and the sum stays below n +
/// 1; truncation removes the fraction.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
pub(in crate::simd) fn q8_0(values: &[f32], out: &mut [u8]) -> usize {
    let sign = _mm512_set1_epi32(i32::MIN);
    let half = _mm512_castps_si512(_mm512_set1_ps(0.5f32.next_down()));
    steps::<34>(
        values,
        out,
        |values| {
            let largest = _mm512_castsi512_ps(lanes_max(magnitudes(values)));
            (largest, _mm512_div_ps(largest, _mm512_set1_ps(127.0)))
        },
        |values, inverse, packed| {
            let codes = values.map(|x| {
                let p = _mm512_mul_ps(x, inverse);
                // The bits of p where `sign` has a one, otherwise those of `half`.
                let half = _mm512_ternarylogic_epi32::<0xB8>(half, sign, _mm512_castps_si512(p));
                let whole = _mm512_cvttps_epi32(_mm512_add_ps(p, _mm512_castsi512_ps(half)));
                _mm512_cvtepi32_epi8(whole)
            });
            for (packed, codes) in packed.as_chunks_mut().0.iter_mut().zip(codes) {
                store_bytes(packed, codes);
            }
        },
    )
}

/// Encodes blocks up to the first step with one that is not ordinary, and returns their number.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
pub(in crate::simd) fn q4_0(values: &[f32], out: &mut [u8]) -> usize {
    steps::<18>(
        values,
        out,
        |values| {
            // As integers, the largest positive number is the largest nonnegative integer, and the largest pattern of
            // all is that of the most negative number, if there is one.
            let positive = lanes_max(vectors(values, |a, b| {
                let max = _mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
                _mm512_max_epi32(max, _mm512_setzero_si512())
            }));
            let patterns = lanes_max_unsigned(vectors(values, |a, b| {
                _mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b))
            }));
            let magnitude = _mm512_set1_epi32(i32::MAX);
            let is_negative = _mm512_movepi32_mask(patterns);
            let negative = _mm512_maskz_and_epi32(is_negative, patterns, magnitude);
            let largest = _mm512_castsi512_ps(_mm512_max_epi32(positive, negative));
            // −8 divides exactly except for subnormals, so the sign can be added later.
            let scale = _mm512_div_ps(largest, _mm512_set1_ps(-8.0));
            let mut flipped = _mm512_cmpgt_epi32_mask(negative, positive);
            // Both signs have the largest magnitude: the first of them decides.
            let mut both = _mm512_cmpeq_epi32_mask(negative, positive)
                & _mm512_test_epi32_mask(positive, positive);
            while both != 0 {
                let block = both.trailing_zeros();
                both &= both - 1;
                let values = &values[block as usize];
                let largest = values.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
                let first = values.iter().find(|x| x.abs() == largest);
                flipped |= __mmask16::from(first.is_some_and(|&x| x < 0.0)) << block;
            }
            let sign = _mm512_maskz_mov_epi32(flipped, _mm512_set1_epi32(i32::MIN));
            (largest, _mm512_xor_ps(scale, _mm512_castsi512_ps(sign)))
        },
        |values, inverse, packed| {
            let [low, high] = values.map(|x| {
                let p = _mm512_mul_ps(x, inverse);
                let nibble = _mm512_cvttps_epi32(_mm512_add_ps(p, _mm512_set1_ps(8.5)));
                _mm512_min_epi32(nibble, _mm512_set1_epi32(15))
            });
            let bytes = _mm512_or_si512(low, _mm512_slli_epi32::<4>(high));
            if let Some(packed) = packed.first_chunk_mut() {
                store_bytes(packed, _mm512_cvtepi32_epi8(bytes));
            }
        },
    )
}

type StepValues = [[f32; 32]; STEP];

/// Runs a format's steps. `scales` returns the blocks' largest magnitudes and scales; `put` writes a block's codes for
/// a scale's reciprocal (0 for a block of zeros).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn steps<const BYTES: usize>(
    values: &[f32],
    out: &mut [u8],
    scales: impl Fn(&StepValues) -> (__m512, __m512),
    put: impl Fn([__m512; 2], __m512, &mut [u8]),
) -> usize {
    let (values, rest) = values.as_chunks::<32>().0.as_chunks::<STEP>();
    let (out, rest_out) = out.as_chunks_mut::<BYTES>().0.as_chunks_mut::<STEP>();
    let step = |values: &StepValues, out: &mut [[u8; BYTES]]| {
        let (largest, scale) = scales(values);
        // 2⁻¹⁰⁰: from here on a scale and its reciprocal are normal.
        let tiny = _mm512_castps_si512(_mm512_set1_ps(f32::from_bits(27 << 23)));
        let zero = _mm512_testn_epi32_mask(_mm512_castps_si512(largest), _mm512_set1_epi32(-1));
        let odd = _mm512_cmplt_epi32_mask(_mm512_castps_si512(largest), tiny) & !zero;
        let narrow = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(scale);
        // With all ones in the exponent, the scale overflows, or a value is not finite.
        let exponent = _mm256_set1_epi16(0x7C00);
        let wide = _mm256_cmpeq_epi16_mask(_mm256_and_si256(narrow, exponent), exponent);
        if odd | wide != 0 {
            return false;
        }
        let inverse = _mm512_maskz_div_ps(!zero, _mm512_set1_ps(1.0), scale);
        let (mut inverses, mut halves) = ([0.0f32; STEP], [0u8; 2 * STEP]);
        super::store(&mut inverses, inverse);
        // SAFETY: 32 bytes lie there.
        unsafe { _mm256_storeu_si256(halves.as_mut_ptr().cast(), narrow) };
        for (((values, out), inverse), half) in values
            .iter()
            .zip(out)
            .zip(inverses)
            .zip(halves.as_chunks::<2>().0)
        {
            let [a, b] = pair(values);
            let (head, packed) = out.split_at_mut(2);
            head.copy_from_slice(half);
            put([a, b], _mm512_set1_ps(inverse), packed);
        }
        true
    };
    let mut done = 0;
    for (values, out) in values.iter().zip(out) {
        if !step(values, out) {
            return done;
        }
        done += STEP;
    }
    if !rest.is_empty() {
        let mut padded = [[0.0; 32]; STEP];
        padded[..rest.len()].copy_from_slice(rest);
        if step(&padded, rest_out) {
            done += rest.len();
        }
    }
    done
}

#[inline]
#[target_feature(enable = "avx512f")]
fn pair(values: &[f32; 32]) -> [__m512; 2] {
    let halves = values.as_chunks::<16>().0;
    [load(&halves[0]), load(&halves[1])]
}

/// Returns a vector per block.
#[inline]
#[target_feature(enable = "avx512f")]
fn vectors(values: &StepValues, of: impl Fn(__m512, __m512) -> __m512i) -> [__m512i; STEP] {
    let mut vectors = [_mm512_setzero_si512(); STEP];
    for (vector, values) in vectors.iter_mut().zip(values) {
        Ahead::STREAM.ask(values.as_ptr());
        Ahead::STREAM.ask(values[16..].as_ptr());
        let [a, b] = pair(values);
        *vector = of(a, b);
    }
    vectors
}

/// Returns the larger of the magnitudes of a block's halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn magnitudes(values: &StepValues) -> [__m512i; STEP] {
    let magnitude = _mm512_set1_epi32(i32::MAX);
    vectors(values, |a, b| {
        _mm512_max_epi32(
            _mm512_and_si512(_mm512_castps_si512(a), magnitude),
            _mm512_and_si512(_mm512_castps_si512(b), magnitude),
        )
    })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_max(vectors: [__m512i; STEP]) -> __m512i {
    transposed(vectors, |a, b| _mm512_max_epi32(a, b))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_max_unsigned(vectors: [__m512i; STEP]) -> __m512i {
    transposed(vectors, |a, b| _mm512_max_epu32(a, b))
}

/// Lane i of the result joins all lanes of vector i.
///
/// Four rounds halve the number of vectors: two of them become one, whose even places come from the first and whose odd
/// ones from the second; places are lanes, pairs, quarters and halves.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transposed(v: [__m512i; 16], join: impl Fn(__m512i, __m512i) -> __m512i) -> __m512i {
    let lanes = |a, b| join(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let pairs = |a, b| join(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    // Four vectors: quarter q of the result has the results of quarter q of each, in order.
    let four = |a, b, c, d| pairs(lanes(a, b), lanes(c, d));
    let [a, b, c, d] = [0, 4, 8, 12].map(|i| four(v[i], v[i + 1], v[i + 2], v[i + 3]));
    let halves = |a, b| {
        join(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
        )
    };
    halves(halves(a, b), halves(c, d))
}
