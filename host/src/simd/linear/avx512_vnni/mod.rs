//! Rows of weights times one vector, 64 bytes at a time: `vpdpbusd` multiplies unsigned bytes by signed activations.

use std::arch::x86_64::*;

use tercet_core::block::Format;
use tercet_core::linear::Layout;

use crate::simd::avx2::blocks::parts;
use crate::simd::linear::{
    Activations, HalfRows, Line, Linear, Multiply, NarrowRows, Order, Rows, Tiles, Vector,
};

mod blocks;
mod five_trits;
mod fours;
mod half_tiles;
mod int4;
mod int8;
mod int8_pairs;
mod k_quants;
mod one_scale;
mod sums;
mod ternary_lanes;
mod tiles;
mod tq1_0;
mod tq1_0_short;
mod tq2_0;

use fours::{Q2_0, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use k_quants::{Q4K, Q6K};
use tq1_0::Tq1_0;
use tq2_0::Tq2_0;

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    vector,
    halves: half_rows,
    half_tiles: half_tiles::half_tiles,
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
    in_place: Some((Format::Tq2_0, tq2_0::multiply)),
    add: tiles::add,
};

/// Returns the kernel for rows of a layout times a vector.
fn vector(layout: Layout) -> Option<Vector> {
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, int8::rows as NarrowRows),
        Layout::TernaryLanes => (ternary_lanes::prepare, ternary_lanes::rows),
        Layout::Int8Pairs => (int8_pairs::prepare, int8_pairs::rows),
        Layout::Int4 => (int4::prepare, int4::rows),
        Layout::FiveTrits => (five_trits::prepare, five_trits::rows),
        Layout::Block(format) => {
            return match format {
                Format::Tq1_0 => Some(tq1_0::vector()),
                Format::Tq2_0 => Some(one_scale::vector::<Tq2_0>()),
                Format::Q2_0 => Some(blocks::vector::<Q2_0>()),
                Format::Q8_0 => Some(blocks::vector::<Q8_0>()),
                Format::Q4_0 => Some(blocks::vector::<Q4_0>()),
                Format::Q4_1 => Some(blocks::vector::<Q4_1>()),
                Format::Q5_0 => Some(blocks::vector::<Q5_0>()),
                Format::Q5_1 => Some(blocks::vector::<Q5_1>()),
                Format::Q4K | Format::Q6K => parts::vector(format),
            };
        }
    };
    Some(Vector {
        prepare,
        rows: Rows::Narrow(rows),
    })
}

/// Returns the kernel for rows of a format times 16-bit activations.
fn half_rows(format: Format) -> Option<HalfRows> {
    Some(match format {
        Format::Tq1_0 => blocks::half_rows::<Tq1_0>(),
        Format::Tq2_0 => blocks::half_rows::<Tq2_0>(),
        Format::Q2_0 => blocks::half_rows::<Q2_0>(),
        Format::Q8_0 => blocks::half_rows::<Q8_0>(),
        Format::Q4_0 => blocks::half_rows::<Q4_0>(),
        Format::Q4_1 => blocks::half_rows::<Q4_1>(),
        Format::Q5_0 => blocks::half_rows::<Q5_0>(),
        Format::Q5_1 => blocks::half_rows::<Q5_1>(),
        Format::Q4K => k_quants::half_rows::<Q4K>(),
        Format::Q6K => k_quants::half_rows::<Q6K>(),
    })
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

/// Prefetch distances of weights in bytes, into the first cache and into the second.
const AHEAD: usize = 2 << 10;
const FAR: usize = 12 << 10;

/// Asks for weights that come after those of so many bytes. All lines of them: if one line in 33 is left out, as with one
/// line for each block of 66 bytes, TQ2_0 comes at three quarters of the speed.
#[inline(always)]
fn ask(weights: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        prefetch(weights.wrapping_add(AHEAD + line));
    }
}

/// As [`ask`], but earlier and into the second cache, which waits for more lines at once than the first: for kernels that
/// wait for memory. On a Zen 4, with one row after another, TQ2_0 comes at 21 GB/s so and at 16 by [`ask`], Q8_0 at 22
/// and 17. With more work for each byte it is worse: Q4_0 times 16 bits has 15 GB/s so, and 18 by [`ask`].
#[inline(always)]
fn ask_far(weights: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch of any address is only a hint.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(weights.wrapping_add(FAR + line).cast()) };
    }
}

/// Prefetches the line of an address that will be read soon, or is past the end and will not be read.
#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch of any address is only a hint.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}
