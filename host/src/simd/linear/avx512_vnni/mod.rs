//! Rows of weights times one vector, 64 bytes at a time: `vpdpbusd` multiplies unsigned bytes by signed activations.

use std::arch::x86_64::*;

use tercet_core::block::Format;
use tercet_core::linear::Layout;

use crate::simd::avx512::linear::halves;
use crate::simd::avx512_vnni::blocks::loops;
use crate::simd::linear::{Activations, Line, Linear, Multiply, Order, Rows, Tiles, Vector};

mod blocks;
mod five_trits;
mod fours;
mod int4;
mod int8;
mod int8_pairs;
mod sums;
mod ternary_lanes;
mod tiles;
mod tq1_0;
mod tq2_0;

use fours::{q2_0, q4_0, q8_0};

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    vector,
    halves: halves::halves,
    half_tiles: halves::half_tiles,
    tiles: Some(TILES),
};

/// The kernels of tiles.
pub(in crate::simd) const TILES: Tiles = Tiles {
    order: Order::COLUMNS,
    unpack: tiles::unpack,
    pack: tiles::pack,
    multiply: Multiply::Strips {
        any: tiles::multiply,
        nibbles: tiles::multiply,
        two_bits: tiles::multiply,
    },
    in_place: None,
    add: tiles::add,
};

/// Returns the kernel for rows of a layout times a vector.
fn vector(layout: Layout) -> Option<Vector> {
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, Rows::Narrow(int8::rows)),
        Layout::Block(Format::Tq1_0) => (tq1_0::prepare, Rows::Wide(tq1_0::rows)),
        Layout::Block(Format::Tq2_0) => (tq2_0::prepare, Rows::Wide(tq2_0::rows)),
        Layout::Block(Format::Q2_0) => (q2_0::prepare, Rows::Wide(q2_0::rows)),
        Layout::Block(Format::Q8_0) => (q8_0::prepare, Rows::Wide(q8_0::rows)),
        Layout::Block(Format::Q4_0) => (q4_0::prepare, Rows::Wide(q4_0::rows)),
        Layout::TernaryLanes => (ternary_lanes::prepare, Rows::Narrow(ternary_lanes::rows)),
        Layout::Int8Pairs => (int8_pairs::prepare, Rows::Narrow(int8_pairs::rows)),
        Layout::Int4 => (int4::prepare, Rows::Narrow(int4::rows)),
        Layout::FiveTrits => (five_trits::prepare, Rows::Narrow(five_trits::rows)),
        Layout::Block(other) => return loops::vector(other),
    };
    Some(Vector { prepare, rows })
}

/// Returns the addresses of four rows. If there are fewer, the last replaces missing ones; their sums are left out.
#[inline]
fn four_rows(bytes: &[u8], row_bytes: usize, first: usize, count: usize) -> [*const u8; 4] {
    let row = |row: usize| bytes[(first + row).min(count - 1) * row_bytes..].as_ptr();
    [row(0), row(1), row(2), row(3)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &Line) -> __m512i {
    // SAFETY: a line is 64 bytes, aligned.
    unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
}

/// # Safety
/// So many lines must lie there, and the set must run here.
#[inline(always)]
unsafe fn load_lines<const N: usize>(lines: *const Line) -> [__m512i; N] {
    // SAFETY: as the caller promises; a line is 64 bytes, aligned.
    unsafe {
        let mut loaded = [_mm512_setzero_si512(); N];
        for (at, loaded) in loaded.iter_mut().enumerate() {
            *loaded = _mm512_load_si512(lines.add(at).cast());
        }
        loaded
    }
}

/// Prefetch distance of weights in bytes: the amount that memory delivers during its latency.
const AHEAD: usize = 2048;

/// Prefetches the line of an address that will be read soon, or is past the end and will not be read.
#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch of any address is only a hint.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}
