//! Two ternary rows in each 16-bit lane, eight rows per group: 32 columns per vector.
//!
//! Fields are as in [`lanes`](crate::simd::linear::lanes). Fields 1 and 3 stay 4 times too large until the end: at most
//! 2¹⁶/8 lanes' products of 12·127 are added, less than 2²⁴.

use std::arch::x86_64::*;

use super::sums::fold_fours;
use super::{ask, load};
use crate::simd::linear::{Activations, Line, lanes};

/// Bytes of 64 columns of a group.
const BLOCK: usize = 128;

/// Stores three lines for every 32 columns: even, even, odd, odd; odd, odd, even, even; odd, even, even, odd, of every
/// eight columns. Then the initial sums of a group's rows, −Σx for first rows and −2·Σx for second ones.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    let mut copy = Line([0; 64]);
    for x in x.chunks(64) {
        copy.0 = [0; 64];
        copy.0[..x.len()].copy_from_slice(x);
        let x = load(&copy);
        for places in &PLACES {
            let mut line = Line([0; 64]);
            // SAFETY: a line is 64 bytes, aligned.
            unsafe {
                let places = _mm512_loadu_si512(places.as_ptr().cast());
                let ordered = _mm512_permutexvar_epi8(places, x);
                _mm512_store_si512(line.0.as_mut_ptr().cast(), ordered);
            }
            activations.lines.push(line);
        }
    }
    activations.start.push(lanes::start(x));
}

/// Bytes of words that hold odd columns: in fields 0 and 2, in field 1, in field 3.
const ODDS: [[bool; 4]; 3] = [
    [false, false, true, true],
    [true, true, false, false],
    [true, false, false, true],
];

/// The columns, of 64, of the bytes of the three lines of the first 32, and of the others.
const PLACES: [[u8; 64]; 6] = {
    let mut places = [[0; 64]; 6];
    let mut at = 0;
    while at < 6 * 64 {
        let (line, byte) = (at / 64, at % 64);
        let odd = ODDS[line % 3][byte % 16 / 4];
        let first = 32 * (line / 3) + byte / 16 * 8;
        places[line][byte] = (first + 2 * (byte % 4) + odd as usize) as u8;
        at += 1;
    }
    places
};

/// Processes a group of eight rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(64) * BLOCK;
    // Bytes k of every four words side by side.
    let bytes_of_words = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
    ));
    let order = _mm512_setr_epi32(0, 13, 8, 4, 1, 12, 9, 5, 0, 0, 0, 0, 0, 0, 0, 0);
    let (low, high) = (_mm512_set1_epi8(0b11), _mm512_set1_epi8(0b1100));
    let upper_bit = _mm512_set1_epi8(0b1000);
    // SAFETY: sixteen lanes lie there.
    let start = unsafe { _mm512_loadu_si512(x.start[0].0.as_ptr().cast()) };
    let lines = x.lines.as_chunks::<3>().0;
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(8)) {
        // Two vectors in turn hide the latency of the product.
        let mut sums = [[_mm512_setzero_si512(); 4]; 2];
        let blocks = group.as_chunks::<64>().0.as_chunks::<2>().0;
        for (block, lines) in blocks.iter().zip(lines.as_chunks::<2>().0) {
            for ((sums, bytes), [a, b, c]) in sums.iter_mut().zip(block).zip(lines) {
                ask(bytes.as_ptr(), 64);
                // SAFETY: 64 bytes lie there.
                let words = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
                let lanes = _mm512_shuffle_epi8(words, bytes_of_words);
                let upper = _mm512_srli_epi16::<4>(lanes);
                let (a, b, c) = (load(a), load(b), load(c));
                // (x ^ upper bit) & mask.
                let second = _mm512_ternarylogic_epi32::<0x28>(lanes, upper_bit, high);
                let fourth = _mm512_ternarylogic_epi32::<0x28>(upper, upper_bit, high);
                sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_and_si512(lanes, low), a);
                sums[1] = _mm512_dpbusd_epi32(sums[1], second, b);
                sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_and_si512(upper, low), a);
                sums[3] = _mm512_dpbusd_epi32(sums[3], fourth, c);
            }
        }
        let [mut sums, others] = sums;
        for (sum, other) in sums.iter_mut().zip(others) {
            *sum = _mm512_add_epi32(*sum, other);
        }
        sums[1] = _mm512_srai_epi32::<2>(sums[1]);
        sums[3] = _mm512_srai_epi32::<2>(sums[3]);
        // Lane 4·f + k, then added to that of the other half of the columns.
        let sums = fold_fours(sums);
        let sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32::<0b01_00_11_10>(sums));
        let sums = _mm512_add_epi32(_mm512_permutexvar_epi32(order, sums), start);
        let mask = 0xFF >> 8usize.saturating_sub(out.len());
        // SAFETY: the mask selects what there is room for.
        unsafe { _mm256_mask_storeu_epi32(out.as_mut_ptr(), mask, _mm512_castsi512_si256(sums)) };
    }
}
