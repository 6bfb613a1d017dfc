//! Ternary codes in two bits, with one scale for all: I2_S, and Hugging Face's BitNet packing.
//!
//! A code is written as one of four products, which its two bits choose. The bits 3 stand for nothing; whether there are any is
//! told by one more look at the bytes, a sixteenth of what is written.

use tercet_core::number::bits;

use super::lanes::{Lanes, Value};
use super::stats::VECTORS;
use crate::simd::stores::{Ahead, LINE};

/// Where the four values of an I2_S byte lie, in order.
pub(super) const GROUP_SHIFTS: [u32; 4] = [6, 4, 2, 0];

/// The codes at one place of each byte.
///
/// # Safety
/// The processor runs the set; there is a float for each byte.
#[inline(always)]
pub(in crate::simd) unsafe fn decode_row<S: Lanes>(
    bytes: &[u8],
    shift: u32,
    unit: f32,
    out: &mut [f32],
) {
    let whole = bytes.len() / S::WIDTH * S::WIDTH;
    let (vectors, rest) = bytes.split_at(whole);
    let (out, rest_out) = out.split_at_mut(whole);
    // SAFETY: the set runs here; each vector has as many bytes and floats.
    unsafe {
        let products = products::<S>(unit);
        let vectors = vectors.chunks_exact(S::WIDTH);
        for (bytes, out) in vectors.zip(out.chunks_exact_mut(S::WIDTH)) {
            let values = S::choose(products, S::bytes(bytes.as_ptr()), shift);
            S::store_values(values, out.as_mut_ptr());
        }
    }
    one_by_one(rest, shift, unit, rest_out);
}

/// Groups of `lane` bytes, 16 or 32, with four times as many values: a lane of each at a time.
///
/// # Safety
/// The processor runs the set; there are four floats for each byte.
#[inline(always)]
pub(in crate::simd) unsafe fn decode_groups<S: Lanes>(
    lane: usize,
    bytes: &[u8],
    unit: f32,
    out: &mut [f32],
) {
    let groups = bytes.chunks_exact(lane).zip(out.chunks_exact_mut(4 * lane));
    // SAFETY: the set runs here; each vector has as many bytes, and floats in each lane.
    unsafe {
        let products = products::<S>(unit);
        for (bytes, out) in groups {
            for at in (0..lane).step_by(S::WIDTH) {
                let codes = S::bytes(bytes.as_ptr().add(at));
                for (step, shift) in GROUP_SHIFTS.into_iter().enumerate() {
                    let values = S::choose(products, codes, shift);
                    S::store_values(values, out.as_mut_ptr().add(step * lane + at));
                }
            }
        }
    }
}

/// What each code stands for.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn products<S: Lanes>(unit: f32) -> S::Vector {
    let table = [-unit, 0.0 * unit, unit, 2.0 * unit];
    let repeated = [table; 4];
    // SAFETY: the set runs here; a vector has at most 16 lanes.
    unsafe { S::f32(repeated.as_ptr().cast()) }
}

/// [`decode_row`] in plain code.
#[inline(always)]
pub(super) fn one_by_one(bytes: &[u8], shift: u32, unit: f32, out: &mut [f32]) {
    for (byte, value) in bytes.iter().zip(out) {
        *value = (f32::from(byte >> shift & 3) - 1.0) * unit;
    }
}

/// Whether two bits whose lower one is set in `places` are 3 in any byte.
#[inline(always)]
pub(in crate::simd) fn has_three(bytes: &[u8], places: u8) -> bool {
    let mut threes = 0;
    for byte in bytes {
        threes |= byte & byte >> 1;
    }
    threes & places != 0
}

/// The first pattern of a magnitude with `fl(|w| · s) > 0.5`, infinity's where there is none. Products never fall as |w| grows.
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
///
/// # Safety
/// The processor runs the set; rows and `out` have one length.
#[inline(always)]
pub(in crate::simd) unsafe fn pack_rows<S: Lanes, T: Value>(
    rows: [&[T]; 4],
    threshold: u32,
    out: &mut [u8],
) {
    let step = VECTORS * S::WIDTH;
    let whole = out.len() / step * step;
    let (steps, rest) = out.split_at_mut(whole);
    // SAFETY: the set runs here; a step of each row and of the output lies where it is read and written.
    unsafe {
        for (index, out) in steps.chunks_exact_mut(step).enumerate() {
            let mut from = [rows[0].as_ptr(); 4];
            for (from, row) in from.iter_mut().zip(rows) {
                *from = row.as_ptr().add(index * step);
            }
            S::store(pack_step::<S, T>(from, threshold), out.as_mut_ptr().cast());
        }
        if !rest.is_empty() {
            let mut lines = [[T::default(); LINE]; 4];
            let mut from = [lines[0].as_ptr(); 4];
            for ((from, line), row) in from.iter_mut().zip(&mut lines).zip(rows) {
                line[..rest.len()].copy_from_slice(&row[whole..]);
                *from = line.as_ptr();
            }
            let mut packed = [0; LINE];
            S::store(
                pack_step::<S, T>(from, threshold),
                packed.as_mut_ptr().cast(),
            );
            rest.copy_from_slice(&packed[..rest.len()]);
        }
    }
}

/// The bytes of a step.
///
/// # Safety
/// The processor runs the set; a step of values can be read at each place.
#[inline(always)]
unsafe fn pack_step<S: Lanes, T: Value>(rows: [*const T; 4], threshold: u32) -> S::Codes {
    // SAFETY: as the caller says.
    unsafe {
        let mut packed = S::load([0i8; LINE].as_ptr());
        // The last row first, so that those before move it up.
        for row in rows.into_iter().rev() {
            let mut x = [S::splat(0); VECTORS];
            for (at, x) in x.iter_mut().enumerate() {
                let from = row.add(at * S::WIDTH);
                Ahead::STREAM.ask(from);
                *x = T::read::<S>(from);
            }
            packed = S::pack(packed, S::signs(x, threshold).0);
        }
        packed
    }
}

/// [`pack_rows`] of one value of each row.
pub(super) fn pack_one<T: tercet_core::number::Element>(values: [T; 4], threshold: u32) -> u8 {
    let code = |x: f32| match bits::magnitude(x) >= threshold {
        true if x > 0.0 => 2,
        true => 0,
        false => 1,
    };
    let places = values.into_iter().rev();
    places.fold(0, |packed, x| packed << 2 | code(x.to_f32()))
}
