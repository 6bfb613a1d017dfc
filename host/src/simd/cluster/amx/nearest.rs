//! The nearest centroids from tiles of sums, with vectors.
//!
//! A tile has the sums of 16 points, one per row, with 16 centroids. For each point one vector keeps the greatest key
//! of its lanes. Only after all centroids are the lanes of 16 points compared with one another.

use std::arch::x86_64::*;

use crate::simd::cluster::Line;
use crate::simd::cluster::keys::Keys;

/// Points whose sums are computed at once.
pub(super) const POINTS: usize = 32;

#[inline]
#[target_feature(enable = "avx512f")]
fn get(line: &Line) -> __m512i {
    // SAFETY: a line is 64 bytes at a multiple of 64.
    unsafe { _mm512_load_si512((&raw const line.0).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn set(line: &mut Line, vector: __m512i) {
    // SAFETY: a line is 64 bytes at a multiple of 64.
    unsafe { _mm512_store_si512((&raw mut line.0).cast(), vector) }
}

/// The sums of [`POINTS`] points with 16 centroids.
pub(super) type Sums = [Line; POINTS];

#[inline]
#[target_feature(enable = "avx512f")]
fn max(a: __m512i, b: __m512i) -> __m512i {
    _mm512_castps_si512(_mm512_max_ps(
        _mm512_castsi512_ps(a),
        _mm512_castsi512_ps(b),
    ))
}

/// Keeps the greater of each lane's key and those of `T` tiles of sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(super) fn keep<const T: usize>(
    sums: &[Sums],
    tags: &[Line],
    keys: Keys,
    best: &mut [Line; POINTS],
) {
    let (Some(sums), Some(tags)) = (sums.first_chunk::<T>(), tags.first_chunk::<T>()) else {
        unreachable!("as many tiles as said");
    };
    let count = _mm512_set1_epi32(keys.bits as i32 + 1);
    let mut tag = [count; T];
    for (tag, line) in tag.iter_mut().zip(tags) {
        *tag = get(line);
    }
    for (point, best) in best.iter_mut().enumerate() {
        let mut most = get(best);
        for (sums, &tag) in sums.iter().zip(&tag) {
            most = max(most, _mm512_shldv_epi32(get(&sums[point]), tag, count));
        }
        set(best, most);
    }
}

/// Returns the greatest keys of 16 points, one per lane, of `T` tiles of sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(super) fn greatest_of<const T: usize>(
    sums: &[Sums],
    tags: &[Line],
    keys: Keys,
    first: usize,
) -> __m512i {
    let (Some(sums), Some(tags)) = (sums.first_chunk::<T>(), tags.first_chunk::<T>()) else {
        unreachable!("as many tiles as said");
    };
    let count = _mm512_set1_epi32(keys.bits as i32 + 1);
    let mut vectors = [count; 16];
    for (point, vector) in vectors.iter_mut().enumerate() {
        for (tile, (sums, tag)) in sums.iter().zip(tags).enumerate() {
            let key = _mm512_shldv_epi32(get(&sums[first + point]), get(tag), count);
            *vector = if tile == 0 { key } else { max(*vector, key) };
        }
    }
    across(vectors)
}

/// Returns the greatest lanes of 16 vectors, one per lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
pub(super) fn greatest(best: &[Line]) -> __m512i {
    let mut vectors = [_mm512_setzero_si512(); 16];
    for (vector, line) in vectors.iter_mut().zip(best) {
        *vector = get(line);
    }
    across(vectors)
}

/// Four times, two vectors become one: in each half, quarter and so on the lanes of one vector that stay meet those
/// that are moved, and those of the other vector the other way round.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
fn across(v: [__m512i; 16]) -> __m512i {
    let quarters = _mm512_set_epi64(13, 12, 7, 6, 9, 8, 3, 2);
    let ones = _mm512_set_epi32(30, 15, 28, 13, 26, 11, 24, 9, 22, 7, 20, 5, 18, 3, 16, 1);
    let mut halves = [v[0]; 8];
    for (i, out) in halves.iter_mut().enumerate() {
        let (a, b) = (v[i], v[i + 8]);
        *out = max(
            _mm512_mask_blend_epi32(0xFF00, a, b),
            _mm512_shuffle_i64x2::<0b01_00_11_10>(a, b),
        );
    }
    let mut fours = [v[0]; 4];
    for (i, out) in fours.iter_mut().enumerate() {
        let (a, b) = (halves[i], halves[i + 4]);
        *out = max(
            _mm512_mask_blend_epi32(0xF0F0, a, b),
            _mm512_permutex2var_epi64(a, quarters, b),
        );
    }
    let mut twos = [v[0]; 2];
    for (i, out) in twos.iter_mut().enumerate() {
        let (a, b) = (fours[i], fours[i + 2]);
        *out = max(
            _mm512_mask_blend_epi32(0xCCCC, a, b),
            _mm512_castpd_si512(_mm512_shuffle_pd::<0x55>(
                _mm512_castsi512_pd(a),
                _mm512_castsi512_pd(b),
            )),
        );
    }
    let [a, b] = twos;
    max(
        _mm512_mask_blend_epi32(0xAAAA, a, b),
        _mm512_permutex2var_epi32(a, ones, b),
    )
}

/// If keys are only scores: the greatest of each lane, and the first labels that have them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) scores: [Line; POINTS],
    labels: [Line; POINTS],
}

impl Exact {
    /// No score is as low as the smallest i32: −3 · 2¹⁴ · d is above it.
    pub(super) const NONE: Self = Self {
        scores: [Line([i32::MIN; 16]); POINTS],
        labels: [Line::ZERO; POINTS],
    };

    /// Keeps the greater of each lane's score and those of a tile of sums, whose first centroid has the label `first`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(super) fn keep(&mut self, sums: &Sums, tag: &Line, first: usize) {
        let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        let label = _mm512_add_epi32(_mm512_set1_epi32(first as i32), lanes);
        let points = self.scores.iter_mut().zip(&mut self.labels);
        for (sums, (best, labels)) in sums.iter().zip(points) {
            let score = _mm512_shldi_epi32::<1>(get(sums), get(tag));
            let greater = _mm512_cmpgt_epi32_mask(score, get(best));
            set(best, _mm512_max_epi32(score, get(best)));
            set(labels, _mm512_mask_mov_epi32(get(labels), greater, label));
        }
    }

    /// Returns the labels and the greatest scores of 16 points, one per lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    pub(super) fn greatest(&self, first: usize) -> (__m512i, __m512i) {
        let (mut labels, mut scores) = (Line::ZERO, Line::ZERO);
        for point in 0..16 {
            let lanes = get(&self.scores[first + point]);
            let score = _mm512_reduce_max_epi32(lanes);
            let equal = _mm512_cmpeq_epi32_mask(lanes, _mm512_set1_epi32(score));
            let lanes = get(&self.labels[first + point]);
            labels.0[point] = _mm512_mask_reduce_min_epu32(equal, lanes) as i32;
            scores.0[point] = score;
        }
        (get(&labels), get(&scores))
    }
}
