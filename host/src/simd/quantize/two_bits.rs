//! Ternary codes in two bits, with one scale for all: I2_S, and Hugging Face's BitNet packing.
//!
//! A code is decoded to one of four products, selected by its two bits. The bits 3 have no meaning; another pass over
//! the bytes, a sixteenth of the output, checks for them.

use tercet_core::number::bits;

use super::lanes::{Quantizing, VECTORS, Value};
use crate::simd::stores::{Ahead, LINE};

/// The places of the four values of an I2_S byte, in order.
pub(super) const GROUP_SHIFTS: [u32; 4] = [6, 4, 2, 0];

/// Decodes the codes at one place of each byte.
#[inline(always)]
pub(in crate::simd) fn decode_row<S: Quantizing>(
    set: S,
    bytes: &[u8],
    shift: u32,
    unit: f32,
    out: &mut [f32],
) {
    let whole = bytes.len() / set.lanes() * set.lanes();
    let (vectors, rest) = bytes.split_at(whole);
    let (out, rest_out) = out.split_at_mut(whole);
    let products = products::<S>(set, unit);
    let vectors = vectors.chunks_exact(set.lanes());
    for (bytes, out) in vectors.zip(out.chunks_exact_mut(set.lanes())) {
        // SAFETY: a vector's bytes.
        let codes = unsafe { set.bytes(bytes.as_ptr()) };
        set.write(set.choose(products, codes, shift), out);
    }
    one_by_one(rest, shift, unit, rest_out);
}

/// Decodes groups of `lane` bytes, 16 or 32, with four times as many values: a lane of each at a time.
#[inline(always)]
pub(in crate::simd) fn decode_groups<S: Quantizing>(
    set: S,
    lane: usize,
    bytes: &[u8],
    unit: f32,
    out: &mut [f32],
) {
    assert!(lane.is_multiple_of(set.lanes()));
    let groups = bytes.chunks_exact(lane).zip(out.chunks_exact_mut(4 * lane));
    let products = products::<S>(set, unit);
    for (bytes, out) in groups {
        for at in (0..lane).step_by(set.lanes()) {
            // SAFETY: a lane is whole vectors, as asserted.
            let codes = unsafe { set.bytes(bytes.as_ptr().add(at)) };
            for (step, shift) in GROUP_SHIFTS.into_iter().enumerate() {
                set.write(
                    set.choose(products, codes, shift),
                    &mut out[step * lane + at..],
                );
            }
        }
    }
}

/// Returns the value of each code.
#[inline(always)]
fn products<S: Quantizing>(set: S, unit: f32) -> S::Words {
    let table = [-unit, 0.0 * unit, unit, 2.0 * unit];
    let repeated = [table; 4];
    set.read(repeated.as_flattened())
}

/// Does [`decode_row`] in plain code.
#[inline(always)]
pub(super) fn one_by_one(bytes: &[u8], shift: u32, unit: f32, out: &mut [f32]) {
    for (byte, value) in bytes.iter().zip(out) {
        *value = (f32::from(byte >> shift & 3) - 1.0) * unit;
    }
}

/// True if two bits whose lower one is set in `places` are 3 in any byte.
#[inline(always)]
pub(in crate::simd) fn has_three(bytes: &[u8], places: u8) -> bool {
    let mut threes = 0;
    for byte in bytes {
        threes |= byte & byte >> 1;
    }
    threes & places != 0
}

/// Returns the first pattern of a magnitude with `fl(|w| · s) > 0.5`, or infinity's if there is none. Products never
/// decrease as |w| grows.
pub(super) fn threshold(s: f32) -> u32 {
    let (mut low, mut high) = (0, bits::INFINITE);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match f32::from_bits(middle) * s > 0.5 {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// Packs four rows of values, the first in the lowest two bits.
#[inline(always)]
pub(in crate::simd) fn pack_rows<S: Quantizing, T: Value>(
    set: S,
    rows: [&[T]; 4],
    threshold: u32,
    out: &mut [u8],
) {
    let step = VECTORS * set.lanes();
    let whole = out.len() / step * step;
    let (steps, rest) = out.split_at_mut(whole);
    for (index, out) in steps.chunks_exact_mut(step).enumerate() {
        let codes = pack_step(set, rows.map(|row| &row[index * step..][..step]), threshold);
        // SAFETY: the bytes of a step.
        unsafe { set.store_codes(codes, out.as_mut_ptr().cast()) };
    }
    if !rest.is_empty() {
        let mut lines = [[T::default(); LINE]; 4];
        for (line, row) in lines.iter_mut().zip(rows) {
            line[..rest.len()].copy_from_slice(&row[whole..]);
        }
        let mut packed = [0i8; LINE];
        let codes = pack_step(set, lines.each_ref().map(|line| &line[..]), threshold);
        set.write_codes(codes, &mut packed, false);
        for (rest, code) in rest.iter_mut().zip(packed) {
            *rest = code.cast_unsigned();
        }
    }
}

/// Returns the bytes of a step of each row.
#[inline(always)]
fn pack_step<S: Quantizing, T: Value>(set: S, rows: [&[T]; 4], threshold: u32) -> S::Codes {
    let mut packed = set.read_codes(&[0; LINE]);
    // The last row first, so that the next ones shift it up.
    for row in rows.into_iter().rev() {
        let mut x = [set.pattern(0); VECTORS];
        for (at, x) in x.iter_mut().enumerate() {
            let from = &row[at * set.lanes()..];
            Ahead::STREAM.ask(from.as_ptr());
            *x = set.values(from);
        }
        packed = set.pack(packed, set.signs(x, threshold).0);
    }
    packed
}

/// Does [`pack_rows`] for one value of each row.
pub(super) fn pack_one<T: tercet_core::number::Element>(values: [T; 4], threshold: u32) -> u8 {
    let code = |x: f32| match bits::magnitude(x) >= threshold {
        true if x > 0.0 => 2,
        true => 0,
        false => 1,
    };
    let places = values.into_iter().rev();
    places.fold(0, |packed, x| packed << 2 | code(x.to_f32()))
}
