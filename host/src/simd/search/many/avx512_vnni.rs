//! Dot products of many int8 queries with a block of 64 rows: 64 rows in lanes, six queries at a time.

use std::arch::x86_64::*;

use crate::simd::search::{BLOCK, Dots, Queries};

/// Queries at a time: with four vectors of rows this takes 24 registers of sums, more than twice what hides the
/// latency.
const QUERIES: usize = 6;

/// Returns the words of a packed block.
pub(in crate::simd) const fn packed_len(dim: usize) -> usize {
    dim.div_ceil(4) * BLOCK
}

/// Packs up to 64 rows in words of four values + 128: the words of all rows at one place, then those at the next.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::simd) fn pack(rows: &[i8], dim: usize, packed: &mut [u32]) {
    let (steps, _) = packed.as_chunks_mut::<BLOCK>();
    for (sixteen, rows) in rows.chunks(16 * dim).enumerate() {
        let count = rows.len() / dim;
        for at in (0..dim).step_by(64) {
            let mask = u64::MAX >> (64 - (dim - at).min(64));
            let mut words = [_mm512_setzero_si512(); 16];
            for (row, words) in words.iter_mut().enumerate().take(count) {
                // SAFETY: the masked values of that row lie there.
                *words =
                    unsafe { _mm512_maskz_loadu_epi8(mask, rows.as_ptr().add(row * dim + at)) };
            }
            let columns = transposed(words);
            for (step, column) in steps[at / 4..].iter_mut().zip(columns) {
                let flipped = _mm512_xor_si512(column, _mm512_set1_epi8(-128));
                // SAFETY: a step has four times 16 words.
                unsafe { _mm512_storeu_si512(step.as_mut_ptr().add(16 * sixteen).cast(), flipped) };
            }
        }
    }
}

/// Word j of vector i becomes word i of vector j.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn transposed(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut words = rows;
    for four in 0..4 {
        let (a, b) = (rows[4 * four], rows[4 * four + 1]);
        let (c, d) = (rows[4 * four + 2], rows[4 * four + 3]);
        let (ab, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let (cd, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        // Vector 4 · four + j: in quarter q, word 4 q + j of the four rows.
        words[4 * four] = _mm512_unpacklo_epi64(ab, cd);
        words[4 * four + 1] = _mm512_unpackhi_epi64(ab, cd);
        words[4 * four + 2] = _mm512_unpacklo_epi64(ab_high, cd_high);
        words[4 * four + 3] = _mm512_unpackhi_epi64(ab_high, cd_high);
    }
    let mut columns = words;
    for j in 0..4 {
        let (a, b, c, d) = (words[j], words[4 + j], words[8 + j], words[12 + j]);
        let (ab, ab_high) = (
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
        );
        let (cd, cd_high) = (
            _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d),
        );
        columns[j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab, cd);
        columns[4 + j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_high, cd_high);
        columns[8 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab, cd);
        columns[12 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_high, cd_high);
    }
    columns
}

/// As [`tercet_core::arch::plain::dot`] for each query and row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn dots(packed: &[u32], queries: Queries<'_>, dots: &mut [Dots]) {
    let dim = queries.dim;
    let groups = queries.values.chunks(QUERIES * dim);
    let groups = groups.zip(queries.sums.chunks(QUERIES));
    for ((values, sums), dots) in groups.zip(dots.chunks_mut(QUERIES)) {
        match sums.len() {
            6 => group::<6>(packed, values, dim, sums, dots),
            5 => group::<5>(packed, values, dim, sums, dots),
            4 => group::<4>(packed, values, dim, sums, dots),
            3 => group::<3>(packed, values, dim, sums, dots),
            2 => group::<2>(packed, values, dim, sums, dots),
            _ => group::<1>(packed, values, dim, sums, dots),
        }
    }
}

/// Computes Q queries. Lanes begin at −128 · Σq, which rows + 128 add.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn group<const Q: usize>(
    packed: &[u32],
    queries: &[i8],
    dim: usize,
    sums: &[i32],
    dots: &mut [Dots],
) {
    let mut lanes = [[_mm512_setzero_si512(); 4]; Q];
    for (lanes, sum) in lanes.iter_mut().zip(sums) {
        *lanes = [_mm512_set1_epi32(sum.wrapping_mul(-128)); 4];
    }
    let (steps, _) = packed.as_chunks::<BLOCK>();
    let (whole, last) = steps.split_at(dim / 4);
    for (step, rows) in whole.iter().enumerate() {
        let rows = load(rows);
        for (query, lanes) in lanes.iter_mut().enumerate() {
            // SAFETY: four values of that query lie there.
            let word = unsafe {
                let at = queries.as_ptr().add(query * dim + 4 * step);
                at.cast::<i32>().read_unaligned()
            };
            add(lanes, rows, word);
        }
    }
    if let [rows] = last {
        let rows = load(rows);
        for (query, lanes) in lanes.iter_mut().enumerate() {
            // The last word is padded with zeros.
            let mut word = [0; 4];
            let values = &queries[query * dim + dim / 4 * 4..(query + 1) * dim];
            for (byte, &x) in word.iter_mut().zip(values) {
                *byte = x as u8;
            }
            add(lanes, rows, i32::from_le_bytes(word));
        }
    }
    for (dots, lanes) in dots.iter_mut().zip(lanes) {
        for (dots, lanes) in dots.as_chunks_mut::<16>().0.iter_mut().zip(lanes) {
            // SAFETY: 16 products lie there.
            unsafe { _mm512_storeu_si512(dots.as_mut_ptr().cast(), lanes) };
        }
    }
}

/// Loads a step's words of 64 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn load(step: &[u32; BLOCK]) -> [__m512i; 4] {
    let step = step.as_ptr();
    // SAFETY: a step has four times 16 words.
    unsafe {
        [
            _mm512_loadu_si512(step.cast()),
            _mm512_loadu_si512(step.add(16).cast()),
            _mm512_loadu_si512(step.add(32).cast()),
            _mm512_loadu_si512(step.add(48).cast()),
        ]
    }
}

/// Adds the products of a query's four values with those of 64 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn add(lanes: &mut [__m512i; 4], rows: [__m512i; 4], word: i32) {
    let word = _mm512_set1_epi32(word);
    lanes[0] = _mm512_dpbusd_epi32(lanes[0], rows[0], word);
    lanes[1] = _mm512_dpbusd_epi32(lanes[1], rows[1], word);
    lanes[2] = _mm512_dpbusd_epi32(lanes[2], rows[2], word);
    lanes[3] = _mm512_dpbusd_epi32(lanes[3], rows[3], word);
}
