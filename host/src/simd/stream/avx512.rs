//! Lines of memory, one register each.

use std::arch::x86_64::*;

use crate::simd::stream::{Line, Stream, WIDE};

/// The loops that measure memory.
pub(in crate::simd) const KERNELS: Stream = Stream {
    read: [read::<false>, read::<true>],
    write: [write::<false>, write::<true>],
    copy: [copy::<false>, copy::<true>],
    narrow: [narrow::<false>, narrow::<true>],
    widen: [widen::<false>, widen::<true>],
};

/// Prefetch distance in lines: 2 KiB, a few hundred cycles of a core's share of memory.
const AHEAD: usize = 32;

/// Returns the exclusive or of all words.
#[target_feature(enable = "avx512f")]
fn read<const HINT: bool>(lines: &[Line]) -> u64 {
    let mut lanes = [_mm512_setzero_si512(); 8];
    let (steps, rest) = lines.as_chunks::<8>();
    for step in steps {
        for (lane, line) in lanes.iter_mut().zip(step) {
            *lane = _mm512_xor_si512(*lane, load::<HINT>(line));
        }
    }
    for line in rest {
        lanes[0] = _mm512_xor_si512(lanes[0], load::<false>(line));
    }
    let mut words = [0u64; 8];
    for lane in lanes {
        let mut line = Line::default();
        store::<false>(&mut line, lane);
        words.iter_mut().zip(line.0).for_each(|(a, b)| *a ^= b);
    }
    words.iter().fold(0, |all, word| all ^ word)
}

/// Writes ones everywhere.
#[target_feature(enable = "avx512f")]
fn write<const HINT: bool>(lines: &mut [Line]) {
    let ones = _mm512_set1_epi64(-1);
    for line in lines {
        store::<HINT>(line, ones);
    }
    fence::<HINT>();
}

/// Copies line for line.
#[target_feature(enable = "avx512f")]
fn copy<const HINT: bool>(from: &[Line], to: &mut [Line]) {
    for (to, from) in to.iter_mut().zip(from) {
        store::<HINT>(to, load::<HINT>(from));
    }
    fence::<HINT>();
}

/// Writes the exclusive or of four lines.
#[target_feature(enable = "avx512f")]
fn narrow<const HINT: bool>(from: &[Line], to: &mut [Line]) {
    for (to, [a, b, c, d]) in to.iter_mut().zip(from.as_chunks::<WIDE>().0) {
        let left = _mm512_xor_si512(load::<HINT>(a), load::<HINT>(b));
        let right = _mm512_xor_si512(load::<HINT>(c), load::<HINT>(d));
        store::<HINT>(to, _mm512_xor_si512(left, right));
    }
    fence::<HINT>();
}

/// Writes each line four times.
#[target_feature(enable = "avx512f")]
fn widen<const HINT: bool>(from: &[Line], to: &mut [Line]) {
    for (to, from) in to.as_chunks_mut::<WIDE>().0.iter_mut().zip(from) {
        let line = load::<HINT>(from);
        to.iter_mut().for_each(|to| store::<HINT>(to, line));
    }
    fence::<HINT>();
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<const HINT: bool>(line: &Line) -> __m512i {
    let line: *const Line = line;
    if HINT {
        // SAFETY: a prefetch of any address does no harm.
        #[allow(unused_unsafe, reason = "newer compilers call it safe")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.wrapping_add(AHEAD).cast())
        };
    }
    // SAFETY: a line is as long as the register, and aligned to its length.
    unsafe { _mm512_load_si512(line.cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store<const HINT: bool>(line: &mut Line, value: __m512i) {
    let line: *mut Line = line;
    if HINT {
        // SAFETY: as in `load`; every caller ends with `fence` before anyone reads the line.
        unsafe { _mm512_stream_si512(line.cast(), value) };
    } else {
        // SAFETY: as in `load`.
        unsafe { _mm512_store_si512(line.cast(), value) };
    }
}

#[inline]
fn fence<const HINT: bool>() {
    if HINT {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
}
