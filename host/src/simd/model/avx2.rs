//! Products of attention with AVX2: queries of 16 bits are multiplied with eight keys of bytes at a time, or four of 16
//! bits; pairs of positions are multiplied with their weights.

use std::arch::x86_64::*;

use tercet_core::model::CacheType;
use tercet_core::model::PageCodes;
use tercet_core::model::attention::{HeadProducts, PlainProducts};
use tercet_core::number::exp2_neg;

use crate::simd::avx2::linear::sums::{fold_eight, fold_four, four_sums};

/// AVX2, which this machine supports.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Products(());

impl Products {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

/// Values per step.
const STEP: usize = 16;

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
        if len > 0 && len.is_multiple_of(STEP) && kind != CacheType::Fp8 {
            let from = first * len;
            match keys {
                PageCodes::Narrow(keys) => {
                    let keys = keys[from..].chunks_exact(8 * len);
                    let scores = scores.as_chunks_mut::<8>().0.iter_mut();
                    let scales = scales[first..].as_chunks::<8>().0;
                    for ((keys, scores), scales) in keys.zip(scores).zip(scales) {
                        // SAFETY: the set runs here.
                        unsafe { eight(query, scale, keys, scales, scores) };
                        done += 8;
                    }
                }
                PageCodes::Wide(keys) => {
                    let keys = keys[from..].chunks_exact(4 * len);
                    let scores = scores.as_chunks_mut::<4>().0.iter_mut();
                    let scales = scales[first..].as_chunks::<4>().0;
                    for ((keys, scores), scales) in keys.zip(scores).zip(scales) {
                        // SAFETY: the set runs here.
                        unsafe { four(query, scale, keys, scales, scores) };
                        done += 4;
                    }
                }
            }
        }
        let rest = (keys, scales, first + done);
        PlainProducts.scores(kind, (query, scale), rest, &mut scores[done..]);
    }

    #[inline(always)]
    fn largest(self, scores: &[f32]) -> (f32, bool) {
        let (eights, rest) = scores.as_chunks::<8>();
        // SAFETY: the set runs here; eight scores are in each, and eight lanes fit.
        let (lanes, finite) = unsafe { largest_of(eights) };
        let (mut largest, own) = PlainProducts.largest(rest);
        for lane in lanes {
            largest = if lane > largest { lane } else { largest };
        }
        (largest, own && finite)
    }

    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        let (Ok(scores), Ok(scales)) = (
            <&mut [f32; 64]>::try_from(&mut *scores),
            <&[f32; 64]>::try_from(scales),
        ) else {
            return PlainProducts.weights(largest, scores, scales, weigh);
        };
        // SAFETY: the set runs here.
        let mut sums = unsafe { (_mm256_setzero_si256(), _mm256_setzero_ps()) };
        let scales = scales.as_chunks::<8>().0;
        for (scores, scales) in scores.as_chunks_mut::<8>().0.iter_mut().zip(scales) {
            // SAFETY: as above; eight values are in each.
            unsafe {
                let before = _mm256_loadu_ps(scores.as_ptr());
                let found = powers(largest, before);
                let mut lanes = [0; 8];
                _mm256_storeu_si256(lanes.as_mut_ptr().cast(), found);
                // A destination of its own: the loop becomes one of vectors.
                let mut weighed = [0.0; 8];
                for ((weight, power), &scale) in weighed.iter_mut().zip(lanes).zip(scales) {
                    *weight = weigh(power, scale);
                }
                let kept = _mm256_set1_ps(f32::NEG_INFINITY);
                let kept = _mm256_cmp_ps::<_CMP_NEQ_UQ>(before, kept);
                let weights = _mm256_and_ps(kept, _mm256_loadu_ps(weighed.as_ptr()));
                _mm256_storeu_ps(scores.as_mut_ptr(), weights);
                // 64 powers of at most 2²⁴; the second operand, if one is NaN.
                sums.0 = _mm256_add_epi32(sums.0, found);
                sums.1 = _mm256_max_ps(weights, sums.1);
            }
        }
        let (mut totals, mut most) = ([0u32; 8], [0f32; 8]);
        // SAFETY: as above; eight values fit in each.
        unsafe {
            _mm256_storeu_si256(totals.as_mut_ptr().cast(), sums.0);
            _mm256_storeu_ps(most.as_mut_ptr(), sums.1);
        }
        let most = most
            .into_iter()
            .fold(0.0, |most, own| if own > most { own } else { most });
        (totals.iter().sum::<u32>().into(), most)
    }

    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; 64]) {
        for (code, &weight) in codes.iter_mut().zip(weights) {
            // The mantissa, shifted by 0 to 26, which clears it.
            let bits = weight.to_bits();
            let field = bits >> 23;
            let mantissa = match field {
                0 => bits,
                _ => bits & 0x7F_FFFF | 0x80_0000,
            };
            let shift = (exponent - (field.max(1) as i32 - 150)).clamp(0, 26) as u32;
            // Half a unit less one, plus one if the floor is odd: exactly half a unit rounds to the even neighbour.
            let odd = mantissa >> shift & 1;
            let half = 1 << shift >> 1;
            let rounded = (mantissa + odd).wrapping_add(half).wrapping_sub(1) >> shift;
            *code = if shift == 0 { mantissa } else { rounded } as i32;
        }
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
                    && values.len() == 64 * len =>
            {
                let mut pairs = [0; 32];
                for (pair, weights) in pairs.iter_mut().zip(weights.as_chunks::<2>().0) {
                    // Both are below 2¹⁵; a gradient's have signs.
                    *pair = weights[0] & 0xFFFF | weights[1] << 16;
                }
                let (twice, once) = sums.as_chunks_mut::<{ 2 * STEP }>();
                let mut first = 0;
                for sums in twice {
                    // SAFETY: the set runs here; a page has 64 rows, and 32 columns of each from the first on.
                    let page = unsafe { columns::<2>(&pairs, values[first..].as_ptr(), len) };
                    add(sums, page.as_flattened(), shift);
                    first += 2 * STEP;
                }
                if !once.is_empty() {
                    // SAFETY: as above, with sixteen columns.
                    let page = unsafe { columns::<1>(&pairs, values[first..].as_ptr(), len) };
                    add(once, page.as_flattened(), shift);
                }
            }
            values => PlainProducts.values(kind, weights, values, shift, sums),
        }
    }
}

/// Returns the largest scores of each lane, and true if all are finite.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn largest_of(scores: &[[f32; 8]]) -> ([f32; 8], bool) {
    let infinite = _mm256_set1_epi32(0x7F80_0000);
    let (mut most, mut fault) = (_mm256_set1_ps(f32::NEG_INFINITY), _mm256_setzero_si256());
    for scores in scores {
        // SAFETY: eight scores are there.
        let scores = unsafe { _mm256_loadu_ps(scores.as_ptr()) };
        // The second operand, if one is NaN.
        most = _mm256_max_ps(scores, most);
        let exponent = _mm256_and_si256(_mm256_castps_si256(scores), infinite);
        fault = _mm256_or_si256(fault, _mm256_cmpeq_epi32(exponent, infinite));
    }
    let mut lanes = [0.0; 8];
    // SAFETY: eight lanes fit.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), most) };
    (lanes, _mm256_testz_si256(fault, fault) == 1)
}

/// 2^(31 − i/256), which [`exp2_neg`] reads from its own table.
const TABLE: [u32; 257] = {
    let mut table = [0; 257];
    let mut at = 0;
    while at < table.len() {
        table[at] = exp2_neg((at as u32) << 12);
        at += 1;
    }
    table
};

/// Returns (exp2_neg(steps(largest − s)) + 64) >> 7 of eight scores, as in core's
/// [attention](tercet_core::model::attention): 0 for −∞.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn powers(largest: f32, scores: __m256) -> __m256i {
    let value = exp2_neg_steps(_mm256_sub_ps(_mm256_set1_ps(largest), scores));
    _mm256_srli_epi32::<7>(_mm256_add_epi32(value, _mm256_set1_epi32(64)))
}

/// Returns [`exp2_neg`] of core's [`steps`](tercet_core::model) of eight values of at least 0.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn exp2_neg_steps(x: __m256) -> __m256i {
    let x = _mm256_mul_ps(x, _mm256_set1_ps(std::f32::consts::LOG2_E));
    // The second operand, if one is NaN.
    let x = _mm256_min_ps(x, _mm256_set1_ps(31.99));
    let u = _mm256_cvttps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(1_048_576.0)));
    let step = _mm256_and_si256(_mm256_srli_epi32::<12>(u), _mm256_set1_epi32(255));
    let low = _mm256_and_si256(u, _mm256_set1_epi32((1 << 12) - 1));
    // SAFETY: the table has an element for each step, and one more.
    let (high, next) = unsafe {
        let table = TABLE.as_ptr().cast::<i32>();
        (
            _mm256_i32gather_epi32::<4>(table, step),
            _mm256_i32gather_epi32::<4>(table.add(1), step),
        )
    };
    let slope = _mm256_srli_epi32::<3>(_mm256_sub_epi32(high, next));
    let chord = _mm256_srli_epi32::<9>(_mm256_mullo_epi32(slope, low));
    let rest = _mm256_sub_epi32(_mm256_set1_epi32(1 << 12), low);
    let bend = _mm256_srli_epi32::<12>(_mm256_mullo_epi32(low, rest));
    let curved = _mm256_mullo_epi32(_mm256_srli_epi32::<18>(high), bend);
    let curved = _mm256_mullo_epi32(curved, _mm256_set1_epi32(246));
    let both = _mm256_add_epi32(chord, _mm256_srli_epi32::<20>(curved));
    _mm256_srlv_epi32(_mm256_sub_epi32(high, both), _mm256_srli_epi32::<20>(u))
}

/// Computes the scores of eight keys of bytes.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn eight(query: &[i16], scale: f32, keys: &[i8], scales: &[f32; 8], scores: &mut [f32; 8]) {
    let len = query.len();
    assert!(keys.len() == 8 * len);
    let mut sums = [_mm256_setzero_si256(); 8];
    for (at, query) in query.as_chunks::<STEP>().0.iter().enumerate() {
        // SAFETY: sixteen values of the query and of each key lie there.
        unsafe {
            let query = _mm256_loadu_si256(query.as_ptr().cast());
            for (key, sum) in sums.iter_mut().enumerate() {
                let from = keys.as_ptr().add(key * len + at * STEP);
                let key = _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast()));
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(key, query));
            }
        }
    }
    // Below 2³¹ for the longest head.
    let dots = _mm256_cvtepi32_ps(fold_eight(sums));
    // SAFETY: eight scales and scores lie there.
    unsafe {
        let scales = _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_loadu_ps(scales.as_ptr()));
        _mm256_storeu_ps(scores.as_mut_ptr(), _mm256_mul_ps(dots, scales));
    }
}

/// Computes the scores of four keys of 16 bits. Two products fit 31 bits; for sums of them the upper and the lower
/// halves are added separately.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn four(query: &[i16], scale: f32, keys: &[i16], scales: &[f32; 4], scores: &mut [f32; 4]) {
    let len = query.len();
    assert!(keys.len() == 4 * len);
    let mut high = [_mm256_setzero_si256(); 4];
    let mut low = high;
    let half = _mm256_set1_epi32(0xFFFF);
    for (at, query) in query.as_chunks::<STEP>().0.iter().enumerate() {
        // SAFETY: sixteen values of the query and of each key lie there.
        unsafe {
            let query = _mm256_loadu_si256(query.as_ptr().cast());
            for key in 0..4 {
                let from = keys.as_ptr().add(key * len + at * STEP);
                let sums = _mm256_madd_epi16(_mm256_loadu_si256(from.cast()), query);
                high[key] = _mm256_add_epi32(high[key], _mm256_srai_epi32::<16>(sums));
                low[key] = _mm256_add_epi32(low[key], _mm256_and_si256(sums, half));
            }
        }
    }
    let high = _mm256_cvtepi32_pd(four_sums(fold_four(high)));
    let low = _mm256_cvtepi32_pd(four_sums(fold_four(low)));
    // Exact, then rounded once.
    let dots = _mm256_cvtpd_ps(_mm256_fmadd_pd(high, _mm256_set1_pd(65_536.0), low));
    // SAFETY: four scales and scores lie there.
    unsafe {
        let scales = _mm_mul_ps(_mm_set1_ps(scale), _mm_loadu_ps(scales.as_ptr()));
        _mm_storeu_ps(scores.as_mut_ptr(), _mm_mul_ps(dots, scales));
    }
}

/// Adds a page's sums, shifted.
#[inline(always)]
pub(super) fn add(sums: &mut [i64], page: &[i32], shift: u32) {
    for (sum, &page) in sums.iter_mut().zip(page) {
        *sum += i64::from(page) << shift;
    }
}

/// Returns Σ w · v of N times sixteen columns of a page, for its weights in pairs.
///
/// # Safety
/// N times sixteen bytes lie at `values` and at each 63 times `len` bytes on.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn columns<const N: usize>(
    pairs: &[i32; 32],
    values: *const i8,
    len: usize,
) -> [[i32; STEP]; N] {
    let mut sums = [[_mm256_setzero_si256(); 2]; N];
    for (pair, &both) in pairs.iter().enumerate() {
        if both == 0 {
            continue;
        }
        let both = _mm256_set1_epi32(both);
        for (step, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as the caller promises.
            let [first, second] = unsafe {
                let row = values.add(2 * pair * len + step * STEP);
                [
                    _mm_loadu_si128(row.cast()),
                    _mm_loadu_si128(row.add(len).cast()),
                ]
            };
            let low = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(first, second));
            let high = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(first, second));
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, both));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, both));
        }
    }
    let mut all = [[0; STEP]; N];
    for (all, sums) in all.iter_mut().zip(sums) {
        // SAFETY: sixteen sums fit there.
        unsafe {
            _mm256_storeu_si256(all.as_mut_ptr().cast(), sums[0]);
            _mm256_storeu_si256(all.as_mut_ptr().add(8).cast(), sums[1]);
        }
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    use tercet_core::number::Random;

    use super::*;

    /// Compares the results of a set's products and of plain ones for a page's keys and values.
    pub(in crate::simd::model) fn check(
        products: impl HeadProducts,
        head: usize,
        kind: CacheType,
        extreme: bool,
        random: &mut Random,
    ) {
        let mut code = |largest: i32| match extreme {
            true => largest * (random.below(2) as i32 * 2 - 1),
            false => random.below(2 * largest as u64 + 1) as i32 - largest,
        };
        let query: Vec<i16> = (0..head).map(|_| code(32_512) as i16).collect();
        let narrow: Vec<i8> = (0..64 * head).map(|_| code(127) as i8).collect();
        let wide: Vec<i16> = (0..64 * head).map(|_| code(32_512) as i16).collect();
        let scales: Vec<f32> = (0..64).map(|_| code(1000) as f32 * 1e-5).collect();
        let mut weights = [[0; 64]; 2];
        for weight in weights.as_flattened_mut() {
            *weight = code(32_767);
        }
        // Some pairs are zeros, and some have one zero; a gradient's have signs.
        for weight in &mut weights[0] {
            *weight = (*weight).max(0);
        }
        for codes in [PageCodes::Narrow(&narrow), PageCodes::Wide(&wide)] {
            for (first, count) in [(0, 64), (0, 1), (3, 61), (7, 13), (60, 4), (64, 0)] {
                let (mut found, mut expected) = (vec![0.0; count], vec![1.0; count]);
                let keys = (codes, scales.as_slice(), first);
                products.scores(kind, (&query, 0.01), keys, &mut found);
                PlainProducts.scores(kind, (&query, 0.01), keys, &mut expected);
                let bits = |scores: &[f32]| scores.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&found), bits(&expected), "{head}, {first}, {count}");
            }
            for weights in &weights {
                let (mut found, mut expected) = (vec![5; head], vec![5; head]);
                products.values(kind, weights, codes, 20, &mut found);
                PlainProducts.values(kind, weights, codes, 20, &mut expected);
                assert_eq!(found, expected, "{head}");
            }
        }
    }

    /// Compares the largest scores of pages by both.
    #[target_feature(enable = "avx2,fma")]
    fn check_largest(random: &mut Random) {
        let products = Products::here();
        for count in 0..=64 {
            let mut scores: Vec<f32> = (0..count)
                .map(|_| random.below(1 << 24) as f32 - (1 << 23) as f32)
                .collect();
            let compare = |scores: &[f32]| {
                assert_eq!(products.largest(scores), PlainProducts.largest(scores));
            };
            compare(&scores);
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                for at in 0..count {
                    let before = std::mem::replace(&mut scores[at], bad);
                    let (_, finite) = products.largest(&scores);
                    assert!(!finite, "{count}, {at}");
                    compare(&scores);
                    scores[at] = before;
                }
            }
        }
    }

    #[test]
    fn the_largest_score_of_a_page_is_that_of_plain_loops() {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the set runs here.
            unsafe { check_largest(&mut Random::new(8)) };
        }
    }

    /// Compares weights and codes of pages by both.
    #[target_feature(enable = "avx2,fma")]
    fn check_weights(random: &mut Random) {
        let products = Products::here();
        let weighs = [0, 1].map(|kind| {
            move |power: u32, scale: f32| match kind {
                0 => power as f32 * scale,
                _ => power as f32,
            }
        });
        for round in 0..200u32 {
            let spread = 2f32.powi(round as i32 % 24 - 12);
            let mut draw =
                |most: f32| (random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0) * most;
            let largest = draw(10.0);
            let mut scores = [0.0; 64];
            for score in &mut scores {
                *score = largest - draw(spread).abs();
            }
            scores[3] = largest;
            let kept = if round % 3 == 0 {
                64
            } else {
                round as usize % 64 + 1
            };
            scores[kept..].fill(f32::NEG_INFINITY);
            let exponent = -((round % 50) as i32) * 2;
            let scales: [f32; 64] = std::array::from_fn(|_| draw(1.0).abs() * 2f32.powi(exponent));
            for weigh in &weighs {
                let (mut found, mut expected) = (scores, scores);
                let sums = products.weights(largest, &mut found, &scales, weigh);
                assert_eq!(
                    sums,
                    PlainProducts.weights(largest, &mut expected, &scales, weigh)
                );
                assert_eq!(
                    found.map(f32::to_bits),
                    expected.map(f32::to_bits),
                    "{round}"
                );
                // As large as they may be for that power of two, which the driver takes, or smaller.
                let (_, most) = sums;
                let least = (most.to_bits() >> 23) as i32 - 140;
                for more in [0, 1, 5, 12, 24, 31] {
                    let (mut codes, mut plain) = ([0; 64], [1; 64]);
                    products.codes(&found, least + more, &mut codes);
                    PlainProducts.codes(&found, least + more, &mut plain);
                    assert_eq!(codes, plain, "{round}, {more}");
                }
            }
        }
        // Exactly half a unit rounds to the even neighbour; also subnormal values, and values that need no shift.
        let mut weights = [0.0; 64];
        for (at, weight) in weights.iter_mut().enumerate() {
            *weight = at as f32 * 0.5;
        }
        weights[60] = f32::from_bits(3);
        for exponent in [-149, -126, -23, -10, 0, 1, 3, 100] {
            let (mut codes, mut plain) = ([0; 64], [1; 64]);
            products.codes(&weights, exponent, &mut codes);
            PlainProducts.codes(&weights, exponent, &mut plain);
            assert_eq!(codes, plain, "{exponent}");
        }
    }

    #[test]
    fn weights_of_pages_are_those_of_plain_loops() {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the set runs here.
            unsafe { check_weights(&mut Random::new(9)) };
        }
    }

    #[test]
    fn heads_of_any_length_have_the_sums_of_plain_loops() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            return;
        }
        let mut random = Random::new(6);
        // SAFETY: the set runs here.
        let products = unsafe { Products::here() };
        for head in [8, 16, 20, 32, 48, 64, 80, 128, 256] {
            for extreme in [false, true] {
                check(products, head, CacheType::Int16, extreme, &mut random);
            }
        }
        check(products, 16, CacheType::Fp8, false, &mut random);
    }
}
