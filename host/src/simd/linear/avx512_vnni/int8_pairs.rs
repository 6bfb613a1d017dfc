//! Pairs of int8 columns, four rows per group: each 32-bit lane is a row's next four columns.
//!
//! In a pair e + 256·o the upper byte is less by 1 if e is negative. So Σ e·x + o·x' is the dot product of the stored
//! bytes, plus x' for each negative lower byte. Bytes have their signs flipped for `vpdpbusd`, and 128·Σx is
//! subtracted.

use std::arch::x86_64::*;

use super::{ask, load};
use crate::simd::linear::{Activations, Line};

/// Stores four lines for the vector of every sixteen columns: every four columns four times, then with the odd ones in
/// the even ones' places.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    super::int8::prepare(x, activations);
    let steps = x.len().div_ceil(16);
    let mut lines = Vec::with_capacity(2 * steps);
    for x in x.chunks(16) {
        let mut columns = [0; 16];
        columns[..x.len()].copy_from_slice(x);
        let (mut four, mut odd) = ([0; 64], [0; 64]);
        for (at, &[a, b, c, d]) in columns.as_chunks::<4>().0.iter().enumerate() {
            for row in 0..4 {
                four[16 * at + 4 * row..][..4].copy_from_slice(&[a, b, c, d]);
                odd[16 * at + 4 * row..][..4].copy_from_slice(&[b, 0, d, 0]);
            }
        }
        lines.extend([Line(four), Line(odd)]);
    }
    activations.lines = lines;
}

/// Processes a group of four rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(8) * 32;
    let start = _mm_set1_epi32(x.start[0].0[0]);
    let (flip, one) = (_mm512_set1_epi8(i8::MIN), _mm512_set1_epi16(1));
    let lines = x.lines.as_chunks::<2>().0;
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(4)) {
        // Two vectors in turn hide the latency of the product.
        let mut sums = [[_mm512_setzero_si512(); 2]; 2];
        let add = |sums: &mut [__m512i; 2], words, [four, odd]: &[Line; 2]| {
            let negative = _mm512_and_si512(_mm512_srli_epi16::<7>(words), one);
            sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_xor_si512(words, flip), load(four));
            sums[1] = _mm512_dpbusd_epi32(sums[1], negative, load(odd));
        };
        let (whole, rest) = group.as_chunks::<64>();
        let (twos, last) = whole.as_chunks::<2>();
        for (two, lines) in twos.iter().zip(lines.as_chunks::<2>().0) {
            for number in 0..2 {
                ask(two[number].as_ptr(), 64);
                // SAFETY: 64 bytes lie there.
                let words = unsafe { _mm512_loadu_si512(two[number].as_ptr().cast()) };
                add(&mut sums[number], words, &lines[number]);
            }
        }
        for (words, lines) in last.iter().zip(&lines[2 * twos.len()..]) {
            // SAFETY: as before.
            let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
            add(&mut sums[0], words, lines);
        }
        if let (false, Some(lines)) = (rest.is_empty(), lines.get(whole.len())) {
            // SAFETY: half a vector is left, the mask's.
            let words = unsafe { _mm512_maskz_loadu_epi8(0xFFFF_FFFF, rest.as_ptr().cast()) };
            add(&mut sums[0], words, lines);
        }
        let [[a, b], [c, d]] = sums;
        let sum = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
        let sum = _mm_add_epi32(super::sums::four_sums(sum), start);
        super::sums::store_four(sum, out);
    }
}
