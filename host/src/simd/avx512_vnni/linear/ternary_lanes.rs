//! Two ternary rows in each 16-bit lane, eight rows a group: 32 columns a vector.
//!
//! Byte k of a word holds fields of four rows for one of its two columns each; see [`Layout`](tercet_core::linear::Layout). With the bytes
//! k of four words side by side, a field f of all of them is a 32-bit lane of one row and of four even or four odd columns:
//!
//! | f | k = 0 | 1 | 2 | 3 |
//! |---|---|---|---|---|
//! | 0 | row 0, even | row 4, even | row 0, odd | row 4, odd |
//! | 1 | row 3, odd | row 7, odd | row 3, even | row 7, even |
//! | 2 | row 2, even | row 6, even | row 2, odd | row 6, odd |
//! | 3 | row 5, odd | row 1, even | row 5, even | row 1, odd |
//!
//! So three orders of activations serve. The upper bits of second rows flipped, fields are a + 1 and b + 2. Fields 1 and 3 stay 4 times too
//! large until the end: at most 2¹⁶/8 lanes' products of 12·127 meet, less than 2²⁴.

use std::arch::x86_64::*;

use super::sums::fold_fours;
use super::{AHEAD, load, prefetch};
use crate::simd::linear::{Activations, Line, Start};

/// Bytes of 64 columns of a group.
const BLOCK: usize = 128;

/// Three lines for each 32 columns: even, even, odd, odd; odd, odd, even, even; odd, even, even, odd, of each eight columns. Then what the
/// rows of a group begin with, −Σx for first rows and −2·Σx for second ones.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    let steps = x.len().div_ceil(64) * 2;
    for step in 0..steps {
        let mut lines = [[0; 64]; 3];
        let x = x.get(32 * step..).unwrap_or_default();
        for (col, &x) in x.iter().take(32).enumerate() {
            let odd = col % 2 == 1;
            let at = col / 8 * 16 + col % 8 / 2;
            let places = |first: [bool; 4]| (0..4).filter(move |&k| first[k] == odd);
            for (line, odds) in lines.iter_mut().zip(ODDS) {
                places(odds).for_each(|k| line[at + 4 * k] = x);
            }
        }
        activations.lines.extend(lines.map(Line));
    }
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations
        .start
        .push(Start(std::array::from_fn(|row| match row % 2 {
            0 => -sum,
            _ => -2 * sum,
        })));
}

/// Which bytes of words hold odd columns: in fields 0 and 2, in field 1, in field 3.
const ODDS: [[bool; 4]; 3] = [
    [false, false, true, true],
    [true, true, false, false],
    [true, false, false, true],
];

/// A group of eight rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(64) * BLOCK;
    // Bytes k of each four words side by side.
    let bytes_of_words = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
    ));
    let order = _mm512_setr_epi32(0, 13, 8, 4, 1, 12, 9, 5, 0, 0, 0, 0, 0, 0, 0, 0);
    let (low, high) = (_mm512_set1_epi8(0b11), _mm512_set1_epi8(0b1100));
    let upper_bits = _mm512_set1_epi8(0x88_u8 as i8);
    // SAFETY: sixteen lanes lie there.
    let start = unsafe { _mm512_loadu_si512(x.start[0].0.as_ptr().cast()) };
    let lines = x.lines.as_chunks::<3>().0;
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(8)) {
        let mut sums = [_mm512_setzero_si512(); 4];
        for (bytes, [a, b, c]) in group.as_chunks::<64>().0.iter().zip(lines) {
            prefetch(bytes.as_ptr().wrapping_add(AHEAD));
            // SAFETY: 64 bytes lie there.
            let words = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            let flipped = _mm512_xor_si512(words, upper_bits);
            let lanes = _mm512_shuffle_epi8(flipped, bytes_of_words);
            let upper = _mm512_srli_epi16::<4>(lanes);
            let (a, b, c) = (load(a), load(b), load(c));
            sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_and_si512(lanes, low), a);
            sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_and_si512(lanes, high), b);
            sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_and_si512(upper, low), a);
            sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_and_si512(upper, high), c);
        }
        sums[1] = _mm512_srai_epi32::<2>(sums[1]);
        sums[3] = _mm512_srai_epi32::<2>(sums[3]);
        // Lane 4·f + k, and then with that of the other half of the columns.
        let sums = fold_fours(sums);
        let sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32::<0b01_00_11_10>(sums));
        let sums = _mm512_add_epi32(_mm512_permutexvar_epi32(order, sums), start);
        let mask = 0xFF >> 8usize.saturating_sub(out.len());
        // SAFETY: the mask selects what there is room for.
        unsafe { _mm256_mask_storeu_epi32(out.as_mut_ptr(), mask, _mm512_castsi512_si256(sums)) };
    }
}
