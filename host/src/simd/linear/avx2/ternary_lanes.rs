//! Two ternary rows in each 16-bit lane, eight rows per group: 16 columns per vector. See
//! [`lanes`](crate::simd::linear::lanes).
//!
//! A 16-bit lane adds up 40 of `vpmaddubsw`'s sums, at most 40·2·3·127 = 30,480, before it is widened.

use std::arch::x86_64::*;

use crate::simd::linear::{Activations, lanes};

/// Bytes of 64 columns of a group.
const BLOCK: usize = 128;

/// Words of 32 columns, two vectors each, before sums are widened.
const FLUSH: usize = 20;

/// Processes a group of eight rows at a time.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(64) * BLOCK;
    // Bytes k of every four words side by side.
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
    ));
    let (upper_bits, three) = (_mm256_set1_epi8(0x88_u8 as i8), _mm256_set1_epi8(3));
    let lines = x.lines.as_chunks::<3>().0;
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(8)) {
        let mut sums = [_mm256_setzero_si256(); 4];
        let words = group.as_chunks::<64>().0;
        for (words, lines) in words.chunks(FLUSH).zip(lines.chunks(FLUSH)) {
            let mut narrow = [_mm256_setzero_si256(); 4];
            for (words, [a, b, c]) in words.iter().zip(lines) {
                for half in 0..2 {
                    // SAFETY: 32 bytes lie there.
                    let words = unsafe { _mm256_loadu_si256(words.as_ptr().add(32 * half).cast()) };
                    let words = _mm256_xor_si256(_mm256_shuffle_epi8(words, order), upper_bits);
                    let fields = [
                        (words, a),
                        (_mm256_srli_epi16::<2>(words), b),
                        (_mm256_srli_epi16::<4>(words), a),
                        (_mm256_srli_epi16::<6>(words), c),
                    ];
                    for (sum, (field, line)) in narrow.iter_mut().zip(fields) {
                        // SAFETY: half a line is 32 activations.
                        let x = unsafe { _mm256_load_si256(line.0.as_ptr().add(32 * half).cast()) };
                        let codes = _mm256_and_si256(field, three);
                        *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(codes, x));
                    }
                }
            }
            for (sum, narrow) in sums.iter_mut().zip(narrow) {
                let wide = _mm256_madd_epi16(narrow, _mm256_set1_epi16(1));
                *sum = _mm256_add_epi32(*sum, wide);
            }
        }
        let mut fields = [[0; 4]; 4];
        for (field, sum) in fields.iter_mut().zip(sums) {
            let four = _mm_add_epi32(
                _mm256_castsi256_si128(sum),
                _mm256_extracti128_si256::<1>(sum),
            );
            // SAFETY: four sums fit there.
            unsafe { _mm_storeu_si128(field.as_mut_ptr().cast(), four) };
        }
        let rows = lanes::rows(fields, &x.start[0]);
        out.copy_from_slice(&rows[..out.len()]);
    }
}
