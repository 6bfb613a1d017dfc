//! Q8_0 and Q4_0, 8 blocks of 32 values at a time, so that their scales fill one vector.

use std::arch::x86_64::*;

use super::{absolute, bytes_of, load, store_bytes};
use crate::simd::Ahead;

/// Blocks at a time.
const STEP: usize = 8;

/// Encodes blocks up to the first step with one that is not ordinary, and returns their number.
///
/// `fl(x / d)` away from zero: |x·id| < 127.1, and to such a number p the largest float below ½ is added. For p = n + ½
/// the sum n + 1 − 2⁻²⁵ rounds to n + 1; for the float before it, p is 2⁻²⁵ or more below, and the sum stays below n +
/// 1; truncation removes the fraction.
#[target_feature(enable = "avx2,f16c,bmi1")]
pub(in crate::simd) fn q8_0(values: &[f32], out: &mut [u8]) -> usize {
    let sign = _mm256_set1_ps(-0.0);
    let half = _mm256_set1_ps(0.5f32.next_down());
    steps::<34>(
        values,
        out,
        |values| {
            let largest = lanes_max(vectors(values, |a, b| {
                let [a, b] = [absolute(a), absolute(b)];
                _mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b))
            }));
            let largest = _mm256_castsi256_ps(largest);
            (largest, _mm256_div_ps(largest, _mm256_set1_ps(127.0)))
        },
        |values, inverse, packed| {
            let codes = values.map(|x| {
                let p = _mm256_mul_ps(x, inverse);
                let half = _mm256_or_ps(_mm256_and_ps(p, sign), half);
                _mm256_cvttps_epi32(_mm256_add_ps(p, half))
            });
            if let Some(packed) = packed.first_chunk_mut() {
                store_bytes(packed, bytes_of(codes));
            }
        },
    )
}

/// Encodes blocks up to the first step with one that is not ordinary, and returns their number.
#[target_feature(enable = "avx2,f16c,bmi1")]
pub(in crate::simd) fn q4_0(values: &[f32], out: &mut [u8]) -> usize {
    steps::<18>(
        values,
        out,
        |values| {
            // As integers, the largest positive number is the largest nonnegative integer, and the largest pattern of
            // all is that of the most negative number, if there is one.
            let zero = _mm256_setzero_si256();
            let positive = lanes_max(vectors(values, |a, b| {
                let max = _mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b));
                _mm256_max_epi32(max, zero)
            }));
            let patterns = lanes_max_unsigned(vectors(values, |a, b| {
                _mm256_max_epu32(_mm256_castps_si256(a), _mm256_castps_si256(b))
            }));
            let magnitude = _mm256_castps_si256(absolute(_mm256_castsi256_ps(patterns)));
            let negative = _mm256_and_si256(magnitude, _mm256_srai_epi32::<31>(patterns));
            let largest = _mm256_castsi256_ps(_mm256_max_epi32(positive, negative));
            // −8 divides exactly except for subnormals, so the sign can be added later.
            let scale = _mm256_div_ps(largest, _mm256_set1_ps(-8.0));
            // Both signs have the largest magnitude: the first of them decides.
            let both = _mm256_andnot_si256(
                _mm256_cmpeq_epi32(positive, zero),
                _mm256_cmpeq_epi32(negative, positive),
            );
            let mut both = _mm256_movemask_ps(_mm256_castsi256_ps(both)) as u32;
            let mut first_negative = [0i32; STEP];
            while both != 0 {
                let block = both.trailing_zeros() as usize % STEP;
                both &= both - 1;
                let values = &values[block];
                let largest = values.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
                let first = values.iter().find(|x| x.abs() == largest);
                first_negative[block] = -i32::from(first.is_some_and(|&x| x < 0.0));
            }
            // SAFETY: 8 integers lie there.
            let first = unsafe { _mm256_loadu_si256(first_negative.as_ptr().cast()) };
            let flipped = _mm256_or_si256(_mm256_cmpgt_epi32(negative, positive), first);
            let sign = _mm256_and_ps(_mm256_castsi256_ps(flipped), _mm256_set1_ps(-0.0));
            (largest, _mm256_xor_ps(scale, sign))
        },
        |values, inverse, packed| {
            let [a, b, c, d] = values.map(|x| {
                let p = _mm256_mul_ps(x, inverse);
                let nibble = _mm256_cvttps_epi32(_mm256_add_ps(p, _mm256_set1_ps(8.5)));
                _mm256_min_epi32(nibble, _mm256_set1_epi32(15))
            });
            let low = _mm256_or_si256(a, _mm256_slli_epi32::<4>(c));
            let high = _mm256_or_si256(b, _mm256_slli_epi32::<4>(d));
            let bytes = _mm256_castsi256_si128(bytes_of([low, high, low, high]));
            if let Some(packed) = packed.first_chunk_mut::<16>() {
                // SAFETY: 16 bytes lie there.
                unsafe { _mm_storeu_si128(packed.as_mut_ptr().cast(), bytes) };
            }
        },
    )
}

type StepValues = [[f32; 32]; STEP];

/// Runs a format's steps. `scales` returns the blocks' largest magnitudes and scales; `put` writes a block's codes for
/// a scale's reciprocal (0 for a block of zeros).
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn steps<const BYTES: usize>(
    values: &[f32],
    out: &mut [u8],
    scales: impl Fn(&StepValues) -> (__m256, __m256),
    put: impl Fn([__m256; 4], __m256, &mut [u8]),
) -> usize {
    let (values, rest) = values.as_chunks::<32>().0.as_chunks::<STEP>();
    let (out, rest_out) = out.as_chunks_mut::<BYTES>().0.as_chunks_mut::<STEP>();
    let step = |values: &StepValues, out: &mut [[u8; BYTES]]| {
        let (largest, scale) = scales(values);
        // 2⁻¹⁰⁰: from here on a scale and its reciprocal are normal.
        let tiny = _mm256_castps_si256(_mm256_set1_ps(f32::from_bits(27 << 23)));
        let zero = _mm256_cmpeq_epi32(_mm256_castps_si256(largest), _mm256_setzero_si256());
        let small = _mm256_cmpgt_epi32(tiny, _mm256_castps_si256(largest));
        let odd = _mm256_andnot_si256(zero, small);
        let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(scale);
        // With all ones in the exponent, the scale overflows, or a value is not finite.
        let exponent = _mm_set1_epi16(0x7C00);
        let wide = _mm_cmpeq_epi16(_mm_and_si128(narrow, exponent), exponent);
        if _mm256_movemask_epi8(odd) | _mm_movemask_epi8(wide) != 0 {
            return false;
        }
        let inverse = _mm256_div_ps(_mm256_set1_ps(1.0), scale);
        let inverse = _mm256_andnot_ps(_mm256_castsi256_ps(zero), inverse);
        let (mut inverses, mut halves) = ([0.0f32; STEP], [0u8; 2 * STEP]);
        super::store(&mut inverses, inverse);
        // SAFETY: 16 bytes lie there.
        unsafe { _mm_storeu_si128(halves.as_mut_ptr().cast(), narrow) };
        for (((values, out), inverse), half) in values
            .iter()
            .zip(out)
            .zip(inverses)
            .zip(halves.as_chunks::<2>().0)
        {
            let (head, packed) = out.split_at_mut(2);
            head.copy_from_slice(half);
            put(four(values), _mm256_set1_ps(inverse), packed);
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
#[target_feature(enable = "avx2")]
fn four(values: &[f32; 32]) -> [__m256; 4] {
    let parts = values.as_chunks::<8>().0;
    [
        load(&parts[0]),
        load(&parts[1]),
        load(&parts[2]),
        load(&parts[3]),
    ]
}

/// Returns a vector per block, by joining two at a time.
#[inline]
#[target_feature(enable = "avx2")]
fn vectors(values: &StepValues, join: impl Fn(__m256, __m256) -> __m256i) -> [__m256i; STEP] {
    let mut vectors = [_mm256_setzero_si256(); STEP];
    for (vector, values) in vectors.iter_mut().zip(values) {
        Ahead::STREAM.ask(values.as_ptr());
        Ahead::STREAM.ask(values[16..].as_ptr());
        let [a, b, c, d] = four(values);
        let [a, b] = [join(a, b), join(c, d)].map(|x| _mm256_castsi256_ps(x));
        *vector = join(a, b);
    }
    vectors
}

#[inline]
#[target_feature(enable = "avx2")]
fn lanes_max(vectors: [__m256i; STEP]) -> __m256i {
    transposed(vectors, |a, b| _mm256_max_epi32(a, b))
}

#[inline]
#[target_feature(enable = "avx2")]
fn lanes_max_unsigned(vectors: [__m256i; STEP]) -> __m256i {
    transposed(vectors, |a, b| _mm256_max_epu32(a, b))
}

/// Lane i of the result joins all lanes of vector i.
///
/// Three rounds halve the number of vectors: two of them become one, whose even places come from the first and whose
/// odd ones from the second; places are lanes, pairs and halves.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed(v: [__m256i; 8], join: impl Fn(__m256i, __m256i) -> __m256i) -> __m256i {
    let lanes = |a, b| join(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let pairs = |a, b| join(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let [a, b] = [0, 4].map(|i| pairs(lanes(v[i], v[i + 1]), lanes(v[i + 2], v[i + 3])));
    join(
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_permute2x128_si256::<0x31>(a, b),
    )
}
