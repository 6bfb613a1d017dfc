//! Rows of five ternary columns per byte, in place: bytes as in [TQ1_0](super::tq1_0), and its products.
//!
//! Twelve bytes are 60 columns, so rows are whole numbers of three lanes. Rows with up to five of these groups are
//! multiplied with activations that stay in registers: four rows per vector, or two, or one, and their sums are folded
//! sixteen at a time.

use std::arch::x86_64::*;

use super::sums::{fold_four, fold_fours, four_sums, store_four};
use super::tq1_0::{add, digits, total};
use super::{ask, four_rows, load, load_lines};
use crate::simd::linear::{Activations, Line, Start};

/// Columns per group.
const COLS: usize = 60;
/// Bytes per group.
const BYTES: usize = 12;
/// Digits per byte.
const DIGITS: usize = 5;

/// Returns the number of rows with so many groups in a vector.
const fn per_vector(groups: usize) -> usize {
    match groups {
        1 => 4,
        2 => 2,
        _ => 1,
    }
}

/// Stores for each vector of bytes the activations of their first digits, then of their second ones, and so on; and
/// −Σx.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    let groups = x.len().div_ceil(COLS);
    let rows = per_vector(groups);
    let vectors = (groups * BYTES).div_ceil(64);
    activations.lines = vec![Line([0; 64]); vectors * DIGITS];
    for (group, x) in x.chunks(COLS).enumerate() {
        for (digit, x) in x.chunks(BYTES).enumerate() {
            for (byte, &x) in (group * BYTES..).zip(x) {
                let line = &mut activations.lines[byte / 64 * DIGITS + digit].0;
                for row in 0..rows {
                    line[64 / rows * row + byte % 64] = x;
                }
            }
        }
    }
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations.start = vec![Start([-sum; 16])];
}

/// Processes row after row, in place.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let groups = x.len.div_ceil(COLS);
    assert!(bytes.len() == out.len() * groups * BYTES);
    assert!(x.lines.len() == (groups * BYTES).div_ceil(64) * DIGITS);
    match groups {
        1 => short::<4>(bytes, x, out),
        2 => short::<2>(bytes, x, out),
        3..=SHORT => short::<1>(bytes, x, out),
        _ => long(bytes, x, out),
    }
}

/// Groups whose bytes fit a vector.
const SHORT: usize = 5;

/// Processes rows of at most a vector, `ROWS` of them in each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn short<const ROWS: usize>(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let row_bytes = x.len.div_ceil(COLS) * BYTES;
    // SAFETY: there are lines for a vector.
    let lines = unsafe { load_lines::<DIGITS>(x.lines.as_ptr()) };
    let start = _mm512_set1_epi32(x.start[0].0[0]);
    let (sixteens, rest) = out.as_chunks_mut::<16>();
    let (whole, bytes) = bytes.split_at(sixteens.len() * 16 * row_bytes);
    for (bytes, out) in whole.chunks_exact(16 * row_bytes).zip(sixteens) {
        ask(bytes.as_ptr(), bytes.len());
        let sums = _mm512_add_epi32(sixteen::<ROWS>(bytes, row_bytes, lines), start);
        // SAFETY: sixteen sums fit there.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sums) };
    }
    if !rest.is_empty() {
        // Copied, so that sixteen rows lie there.
        let mut copy = [0; 16 * SHORT * BYTES];
        copy[..bytes.len()].copy_from_slice(bytes);
        let sums = _mm512_add_epi32(sixteen::<ROWS>(&copy, row_bytes, lines), start);
        let mask = 0xFFFF >> (16 - rest.len());
        // SAFETY: the mask selects what there is room for.
        unsafe { _mm512_mask_storeu_epi32(rest.as_mut_ptr(), mask, sums) };
    }
}

/// Returns Σ digit · x of sixteen rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn sixteen<const ROWS: usize>(bytes: &[u8], row_bytes: usize, x: [__m512i; DIGITS]) -> __m512i {
    assert!(bytes.len() >= 16 * row_bytes);
    let mask = 0xFFFF >> (16 - ROWS * row_bytes / 4);
    // Each row begins at its part of a vector; the bytes after it in that part are not multiplied with activations.
    let order = match ROWS {
        4 => _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11),
        2 => _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9, 10, 11, 11, 11),
        _ => _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    };
    let mut at = bytes.as_ptr();
    let mut fours = [_mm512_setzero_si512(); 4];
    for four in fours.iter_mut().take(4 / ROWS) {
        let mut sums = [_mm512_setzero_si512(); 4];
        for sum in &mut sums {
            // SAFETY: the mask selects `ROWS` of the sixteen rows.
            let bytes = unsafe { _mm512_maskz_loadu_epi32(mask, at.cast()) };
            *sum = digits(_mm512_permutexvar_epi32(order, bytes), x);
            at = at.wrapping_add(ROWS * row_bytes);
        }
        *four = fold_four(sums);
    }
    let sums = match ROWS {
        // Lane 4·i + r is row 4·r + i.
        4 => {
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, fours[0])
        }
        // Two quarters per row: those of even rows, then of odd ones, of eight.
        2 => {
            let sums = _mm512_add_epi32(
                _mm512_shuffle_i32x4::<0b10_00_10_00>(fours[0], fours[1]),
                _mm512_shuffle_i32x4::<0b11_01_11_01>(fours[0], fours[1]),
            );
            let order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
            _mm512_permutexvar_epi32(order, sums)
        }
        _ => fold_fours(fours),
    };
    _mm512_srai_epi32::<8>(sums)
}

/// Loads the activations of all digits. In a loop, since `map` may stay a call of one closure per vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn loaded(lines: &[Line; DIGITS]) -> [__m512i; DIGITS] {
    let mut loaded = [_mm512_setzero_si512(); DIGITS];
    for (loaded, line) in loaded.iter_mut().zip(lines) {
        *loaded = load(line);
    }
    loaded
}

/// Processes longer rows, four at a time, so that activations are loaded once for all. A lane's terms stay below
/// 205·3·5·4·255·127 < 2²⁹.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn long(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let row_bytes = x.len.div_ceil(COLS) * BYTES;
    let start = _mm_set1_epi32(x.start[0].0[0]);
    let lines = x.lines.as_chunks::<DIGITS>().0;
    let (whole, rest) = lines.split_at(row_bytes / 64);
    for first in (0..out.len()).step_by(4) {
        let rows = four_rows(bytes, row_bytes, first, out.len());
        let mut sums = [[_mm512_setzero_si512(); 2]; 4];
        for (at, lines) in whole.iter().enumerate() {
            let lines = loaded(lines);
            for (sums, row) in sums.iter_mut().zip(rows) {
                let row = row.wrapping_add(64 * at);
                ask(row, 64);
                // SAFETY: a row has the bytes of the whole vectors.
                add(sums, unsafe { _mm512_loadu_si512(row.cast()) }, lines);
            }
        }
        if let Some(lines) = rest.first() {
            let lines = loaded(lines);
            let mask = 0xFFFF >> (16 - row_bytes % 64 / 4);
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: the mask selects what is left of the row.
                let bytes = unsafe {
                    _mm512_maskz_loadu_epi32(mask, row.wrapping_add(64 * whole.len()).cast())
                };
                add(sums, bytes, lines);
            }
        }
        // Before lanes are added: their sum may not fit while it is 256 times too large.
        let sums = sums.map(|sums| _mm512_srai_epi32::<8>(total(sums)));
        let sums = _mm_add_epi32(four_sums(fold_four(sums)), start);
        store_four(sums, &mut out[first..]);
    }
}
