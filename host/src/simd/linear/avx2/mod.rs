//! Rows of weights times activations, 32 bytes at a time.
//!
//! `vpmaddubsw` adds two products in 16 bits with saturation: exact for codes of 0 to 15, whose two products are at
//! most 2·15·127 = 3,810, and for magnitudes of int8, 2·128·127 = 32,512, if activations take the weights' signs. Rows
//! of int8 are widened to 16 bits for `vpmaddwd`.

use std::arch::x86_64::*;

use tercet_core::block::Format;
use tercet_core::linear::Layout;

use crate::simd::avx2::blocks::{loops, parts};
use crate::simd::linear::{Activations, Linear, Multiply, Order, Rows, Tiles, Vector, lanes};

mod blocks;
mod five_trits;
pub(in crate::simd) mod halves;
mod int4;
mod int8;
mod int8_pairs;
mod q2_0;
mod q4_0;
mod q8_0;
pub(in crate::simd) mod sums;
mod ternary_lanes;
mod tiles;
mod tq1_0;
mod tq2_0;

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    vector,
    halves: halves::halves,
    half_tiles: halves::half_tiles,
    tiles: Some(Tiles {
        order: Order::COLUMNS,
        unpack: tiles::unpack,
        pack: tiles::pack,
        multiply: Multiply::Strips {
            any: tiles::multiply,
            nibbles: tiles::multiply_nibbles,
            two_bits: tiles::multiply_two_bits,
        },
        in_place: Some((Format::Tq2_0, tq2_0::multiply)),
        add: tiles::add,
    }),
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
        Layout::FiveTrits => (five_trits::prepare, Rows::Narrow(five_trits::rows)),
        Layout::Int4 => (int4::prepare, Rows::Narrow(int4::rows)),
        Layout::Int8Pairs => (int8_pairs::prepare, Rows::Narrow(int8_pairs::rows)),
        Layout::TernaryLanes => (lanes::prepare, Rows::Narrow(ternary_lanes::rows)),
        Layout::Block(format @ (Format::Q4K | Format::Q6K)) => return parts::vector(format),
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

/// Returns the sum of eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn total(lanes: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(lanes),
        _mm256_extracti128_si256::<1>(lanes),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    _mm_cvtsi128_si32(one)
}
