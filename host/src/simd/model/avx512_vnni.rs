//! Products of attention with bytes: `vpdpbusd` multiplies both planes of a query with 64 values of a key at a time, and
//! both bytes of weights with four positions of 16 columns. All else is AVX2's.

use std::arch::x86_64::*;

use tercet_core::model::CacheType;
use tercet_core::model::PageCodes;
use tercet_core::model::attention::HeadProducts;
use tercet_core::quant::activations;

use super::avx2;
use crate::simd::avx512::linear::folds::{fold_four, fold_fours};

/// AVX-512 with VNNI, which this machine supports.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Products(avx2::Products);

impl Products {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
    pub(in crate::simd) fn here() -> Self {
        Self(avx2::Products::here())
    }
}

/// Values per step.
const STEP: usize = 64;
/// Maximum length of a head.
const LONGEST: usize = 256;
/// Keys per step.
const KEYS: usize = 16;

/// A query in planes.
#[repr(C, align(64))]
struct Query {
    high: [i8; LONGEST],
    low: [i8; LONGEST],
    len: usize,
    /// 128 times its sum, which unsigned keys add.
    less: i32,
}

impl HeadProducts for Products {
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        (query, scale): (&[i16], f32),
        (keys, scales, first): (PageCodes<'_>, &[f32], usize),
        scores: &mut [f32],
    ) {
        let len = query.len();
        let mut done = 0;
        if let PageCodes::Narrow(keys) = keys
            && kind != CacheType::Fp8
            && (STEP..=LONGEST).contains(&len)
            && len.is_multiple_of(STEP)
            && scores.len() >= KEYS
        {
            let mut planes = Query {
                high: [0; LONGEST],
                low: [0; LONGEST],
                len,
                less: 128 * query.iter().map(|&q| i32::from(q)).sum::<i32>(),
            };
            activations::planes(query, &mut planes.high, &mut planes.low);
            let keys = keys[first * len..].chunks_exact(KEYS * len);
            let scales = scales[first..].as_chunks::<KEYS>().0;
            let scores = scores.as_chunks_mut::<KEYS>().0.iter_mut();
            for ((keys, scores), scales) in keys.zip(scores).zip(scales) {
                // SAFETY: the set runs here.
                unsafe { sixteen(&planes, scale, keys, scales, scores) };
                done += KEYS;
            }
        }
        let rest = (keys, scales, first + done);
        self.0
            .scores(kind, (query, scale), rest, &mut scores[done..]);
    }

    #[inline(always)]
    fn largest(self, scores: &[f32]) -> (f32, bool) {
        self.0.largest(scores)
    }

    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        self.0.weights(largest, scores, scales, weigh)
    }

    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; 64]) {
        self.0.codes(weights, exponent, codes);
    }

    #[inline(always)]
    fn values(
        self,
        kind: CacheType,
        weights: &[i32; 64],
        values: PageCodes<'_>,
        shift: u32,
        sums: &mut [i64],
    ) {
        let len = sums.len();
        match values {
            PageCodes::Narrow(values)
                if kind != CacheType::Fp8
                    && len > 0
                    && len.is_multiple_of(STEP)
                    && values.len() == 64 * len
                    // A gradient's have signs.
                    && weights.iter().all(|&weight| weight >= 0) =>
            {
                let mut bytes = [[0; 64]; 2];
                for (at, &weight) in weights.iter().enumerate() {
                    // Below 2¹⁵.
                    [bytes[0][at], bytes[1][at], ..] = weight.to_le_bytes();
                }
                for (at, sums) in sums.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
                    // SAFETY: the set runs here; a page has 64 rows, and 64 columns of each from there on.
                    let page = unsafe { columns(&bytes, values[at * STEP..].as_ptr(), len) };
                    avx2::add(sums, &page, shift);
                }
            }
            values => self.0.values(kind, weights, values, shift, sums),
        }
    }
}

/// Computes the scores of sixteen keys of bytes. Sums are modulo 2³², which whole ones fit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sixteen(query: &Query, scale: f32, keys: &[i8], scales: &[f32; KEYS], scores: &mut [f32; KEYS]) {
    assert!(keys.len() == KEYS * query.len && query.len <= LONGEST);
    let flip = _mm512_set1_epi8(i8::MIN);
    let mut folded = [_mm512_setzero_si512(); 4];
    for (four, folded) in folded.iter_mut().enumerate() {
        let mut sums = [_mm512_setzero_si512(); 4];
        for (key, sum) in sums.iter_mut().enumerate() {
            let mut planes = [_mm512_setzero_si512(); 2];
            for at in (0..query.len).step_by(STEP) {
                // SAFETY: 64 values of each key and of the query's planes lie there.
                let (key, high, low) = unsafe {
                    let key = keys.as_ptr().add((4 * four + key) * query.len + at);
                    (
                        _mm512_loadu_si512(key.cast()),
                        _mm512_load_si512(query.high.as_ptr().add(at).cast()),
                        _mm512_load_si512(query.low.as_ptr().add(at).cast()),
                    )
                };
                let key = _mm512_xor_si512(key, flip);
                planes[0] = _mm512_dpbusd_epi32(planes[0], key, high);
                planes[1] = _mm512_dpbusd_epi32(planes[1], key, low);
            }
            let above = _mm512_sub_epi32(_mm512_slli_epi32::<8>(planes[0]), planes[0]);
            *sum = _mm512_add_epi32(above, planes[1]);
        }
        *folded = fold_four(sums);
    }
    let dots = _mm512_sub_epi32(fold_fours(folded), _mm512_set1_epi32(query.less));
    // SAFETY: sixteen scales and scores lie there.
    unsafe {
        let scales = _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_loadu_ps(scales.as_ptr()));
        let found = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scales);
        _mm512_storeu_ps(scores.as_mut_ptr(), found);
    }
}

/// Returns Σ w · v of 64 columns of a page, for the lower and the upper bytes of its weights.
///
/// # Safety
/// 64 bytes lie at `values` and at each 63 times `len` bytes on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn columns(weights: &[[u8; 64]; 2], values: *const i8, len: usize) -> [i32; STEP] {
    let mut sums = [[_mm512_setzero_si512(); 4]; 2];
    let fours = weights[0].as_chunks::<4>().0.iter();
    for (four, (low, high)) in fours.zip(weights[1].as_chunks::<4>().0).enumerate() {
        let both = [i32::from_le_bytes(*low), i32::from_le_bytes(*high)];
        if both == [0; 2] {
            continue;
        }
        // SAFETY: as the caller promises.
        let [a, b, c, d] = unsafe {
            let row = values.add(4 * four * len);
            [
                _mm512_loadu_si512(row.cast()),
                _mm512_loadu_si512(row.add(len).cast()),
                _mm512_loadu_si512(row.add(2 * len).cast()),
                _mm512_loadu_si512(row.add(3 * len).cast()),
            ]
        };
        let low = [_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d)];
        let high = [_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d)];
        // Four positions in each word: columns 0 to 3 of every sixteen, 4 to 7, and so on.
        let words = [
            _mm512_unpacklo_epi16(low[0], low[1]),
            _mm512_unpackhi_epi16(low[0], low[1]),
            _mm512_unpacklo_epi16(high[0], high[1]),
            _mm512_unpackhi_epi16(high[0], high[1]),
        ];
        for (sums, weights) in sums.iter_mut().zip(both) {
            let weights = _mm512_set1_epi32(weights);
            for (sum, words) in sums.iter_mut().zip(words) {
                *sum = _mm512_dpbusd_epi32(*sum, weights, words);
            }
        }
    }
    let mut all = [0; STEP];
    for four in 0..4 {
        let above = _mm512_slli_epi32::<8>(sums[1][four]);
        let sum = _mm512_add_epi32(above, sums[0][four]);
        let quarters = [
            _mm512_castsi512_si128(sum),
            _mm512_extracti32x4_epi32::<1>(sum),
            _mm512_extracti32x4_epi32::<2>(sum),
            _mm512_extracti32x4_epi32::<3>(sum),
        ];
        for (sixteen, quarter) in quarters.into_iter().enumerate() {
            // SAFETY: four sums fit there.
            unsafe {
                _mm_storeu_si128(
                    all[16 * sixteen + 4 * four..][..4].as_mut_ptr().cast(),
                    quarter,
                )
            };
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use tercet_core::number::Random;

    use super::*;
    use crate::simd::model::avx2::tests::check;

    #[test]
    fn heads_of_any_length_have_the_sums_of_plain_loops() {
        let runs = is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("fma");
        if !runs {
            return;
        }
        let mut random = Random::new(7);
        // SAFETY: the set runs here.
        let products = unsafe { Products::here() };
        for head in [16, 64, 80, 128, 192, 256, 320] {
            for extreme in [false, true] {
                check(products, head, CacheType::Int16, extreme, &mut random);
            }
        }
        check(products, 64, CacheType::Fp8, false, &mut random);
    }
}
