//! int4, four rows per group: a column has a byte with rows 0 and 1 in its halves and one with rows 2 and 3, the fourth
//! in two's complement.
//!
//! With the first bytes of eight columns side by side, then the second ones, a half of all bytes has two lanes of one
//! row and two of the row after the next. Codes are the weights plus 8, so 8·Σx is subtracted.

use std::arch::x86_64::*;

use super::sums::{fold_four, four_sums, store_four};
use super::{ask, load};
use crate::simd::linear::{Activations, Line, Start};

/// Stores every eight columns twice, four of these per line; and −8·Σx.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); x.len().div_ceil(32)];
    for (line, x) in activations.lines.iter_mut().zip(x.chunks(32)) {
        for (twice, x) in line.0.chunks_exact_mut(16).zip(x.chunks(8)) {
            twice[..x.len()].copy_from_slice(x);
            twice[8..][..x.len()].copy_from_slice(x);
        }
    }
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations.start = vec![Start([-8 * sum; 16])];
}

/// Processes a group of four rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(8) * 16;
    let start = _mm_set1_epi32(x.start[0].0[0]);
    let order = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
    ));
    let low = _mm512_set1_epi8(15);
    // The upper half's upper bit of each second byte.
    let flip = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0x0808_0808, 0x0808_0808));
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(4)) {
        // Two vectors in turn hide the latency of the product.
        let mut sums = [[_mm512_setzero_si512(); 2]; 2];
        let add = |sums: &mut [__m512i; 2], bytes, line: &Line| {
            let bytes = _mm512_shuffle_epi8(bytes, order);
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low);
            let (lower, upper) = (_mm512_and_si512(bytes, low), _mm512_xor_si512(upper, flip));
            sums[0] = _mm512_dpbusd_epi32(sums[0], lower, load(line));
            sums[1] = _mm512_dpbusd_epi32(sums[1], upper, load(line));
        };
        let (whole, rest) = group.as_chunks::<64>();
        let (twos, last) = whole.as_chunks::<2>();
        for (two, lines) in twos.iter().zip(x.lines.as_chunks::<2>().0) {
            for number in 0..2 {
                ask(two[number].as_ptr(), 64);
                // SAFETY: 64 bytes lie there.
                let bytes = unsafe { _mm512_loadu_si512(two[number].as_ptr().cast()) };
                add(&mut sums[number], bytes, &lines[number]);
            }
        }
        for (bytes, line) in last.iter().zip(&x.lines[2 * twos.len()..]) {
            // SAFETY: as before.
            let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            add(&mut sums[0], bytes, line);
        }
        if let (false, Some(line)) = (rest.is_empty(), x.lines.get(whole.len())) {
            let mask = u64::MAX >> (64 - rest.len());
            // SAFETY: the mask selects what is left.
            let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) };
            add(&mut sums[0], bytes, line);
        }
        // Lanes 4·i and 4·i + 1 are of rows 0 and 1, the next two of rows 2 and 3.
        let [[a, b], [c, d]] = sums;
        let (lower, upper) = (_mm512_add_epi32(a, c), _mm512_add_epi32(b, d));
        let folded = fold_four([
            _mm512_maskz_mov_epi32(0x3333, lower),
            _mm512_maskz_mov_epi32(0x3333, upper),
            _mm512_maskz_mov_epi32(0xCCCC, lower),
            _mm512_maskz_mov_epi32(0xCCCC, upper),
        ]);
        store_four(_mm_add_epi32(four_sums(folded), start), out);
    }
}
