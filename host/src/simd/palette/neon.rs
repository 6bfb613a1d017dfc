//! Palettes, 16 values per vector: bits are moved to their bytes by `tbl` and a shift per lane, and are looked up by
//! `tbl`.

use std::arch::aarch64::*;

use super::vectors::Neon;
use crate::simd::palette::lanes::{LookUps, STEP};

impl LookUps for Neon {
    type Bytes = [uint8x16_t; 4];
    type Book = [uint8x16x4_t; 4];
    type Sums = int32x4_t;

    const UNSIGNED: bool = false;

    /// The last 16 indices begin at 6·B.
    #[inline(always)]
    fn reach(self, bits: usize) -> usize {
        6 * bits + 16
    }

    #[inline(always)]
    fn load(self, from: &[i8; STEP]) -> [uint8x16_t; 4] {
        // SAFETY: the set runs here; 64 bytes lie there.
        unsafe {
            [
                vld1q_u8(from.as_ptr().cast()),
                vld1q_u8(from.as_ptr().add(16).cast()),
                vld1q_u8(from.as_ptr().add(32).cast()),
                vld1q_u8(from.as_ptr().add(48).cast()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn unpack<const BITS: usize>(self, from: *const u8) -> [uint8x16_t; 4] {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            if BITS == 8 {
                return self.load(&*from.cast());
            }
            [
                unpack_16::<BITS>(from),
                unpack_16::<BITS>(from.add(2 * BITS)),
                unpack_16::<BITS>(from.add(4 * BITS)),
                unpack_16::<BITS>(from.add(6 * BITS)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn pack<const BITS: usize>(self, indices: [uint8x16_t; 4], to: *mut u8) {
        for (at, indices) in indices.into_iter().enumerate() {
            // SAFETY: the set runs here, and as many bytes are written as promised.
            unsafe {
                let to = to.add(at * 2 * BITS);
                if BITS == 8 {
                    vst1q_u8(to, indices);
                    continue;
                }
                let bits = BITS as i16;
                // Two indices in 16 bits, four in 32, eight in 64: the upper one is shifted down to the lower.
                let two = vreinterpretq_u16_u8(indices);
                let two = vorrq_u16(
                    vandq_u16(two, vdupq_n_u16(0xFF)),
                    vshlq_u16(vshrq_n_u16::<8>(two), vdupq_n_s16(bits)),
                );
                let four = vreinterpretq_u32_u16(two);
                let four = vorrq_u32(
                    vandq_u32(four, vdupq_n_u32(0xFFFF)),
                    vshlq_u32(vshrq_n_u32::<16>(four), vdupq_n_s32(2 * i32::from(bits))),
                );
                let eight = vreinterpretq_u64_u32(four);
                let eight = vorrq_u64(
                    vandq_u64(eight, vdupq_n_u64(0xFFFF_FFFF)),
                    vshlq_u64(vshrq_n_u64::<32>(eight), vdupq_n_s64(4 * i64::from(bits))),
                );
                let places = vld1q_u8(const { gather(BITS) }.as_ptr());
                vst1q_u8(to, vqtbl1q_u8(vreinterpretq_u8_u64(eight), places));
            }
        }
    }

    #[inline(always)]
    fn book(self, from: &[u8; 256]) -> [uint8x16x4_t; 4] {
        // SAFETY: the set runs here; 256 bytes lie there.
        unsafe {
            let from = from.as_ptr();
            [
                book_64(from),
                book_64(from.add(64)),
                book_64(from.add(128)),
                book_64(from.add(192)),
            ]
        }
    }

    #[inline(always)]
    fn look_up<const BITS: usize>(
        self,
        book: &[uint8x16x4_t; 4],
        mut indices: [uint8x16_t; 4],
    ) -> [uint8x16_t; 4] {
        for indices in &mut indices {
            // SAFETY: the set runs here.
            *indices = unsafe { look_up_16::<BITS>(book, *indices) };
        }
        indices
    }

    #[inline(always)]
    fn scaled(self, entries: [uint8x16_t; 4], scale: f32, to: &mut [f32; STEP]) {
        for (at, entries) in entries.into_iter().enumerate() {
            // SAFETY: the set runs here, and 64 floats have room.
            unsafe {
                let entries = vreinterpretq_s8_u8(entries);
                let halves = [vmovl_s8(vget_low_s8(entries)), vmovl_high_s8(entries)];
                for (half, words) in halves.into_iter().enumerate() {
                    let to = to.as_mut_ptr().add(16 * at + 8 * half);
                    let low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
                    let high = vcvtq_f32_s32(vmovl_high_s16(words));
                    vst1q_f32(to, vmulq_n_f32(low, scale));
                    vst1q_f32(to.add(4), vmulq_n_f32(high, scale));
                }
            }
        }
    }

    #[inline(always)]
    fn zero(self) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_s32(0) }
    }

    /// A product of two bytes fits 16 bits, and a pair of them 32.
    #[inline(always)]
    fn product(self, mut sums: int32x4_t, entries: [uint8x16_t; 4], x: &[i8; STEP]) -> int32x4_t {
        for (at, entries) in entries.into_iter().enumerate() {
            // SAFETY: the set runs here, and 64 activations lie there.
            unsafe {
                let (entries, x) = (
                    vreinterpretq_s8_u8(entries),
                    vld1q_s8(x.as_ptr().add(16 * at)),
                );
                sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(entries), vget_low_s8(x)));
                sums = vpadalq_s16(sums, vmull_high_s8(entries, x));
            }
        }
        sums
    }

    #[inline(always)]
    fn total(self, sums: int32x4_t) -> i32 {
        // SAFETY: the set runs here.
        unsafe { vaddvq_s32(sums) }
    }
}

/// Reads 16 indices of less than eight bits, from 16 bytes.
///
/// # Safety
/// The set runs here, and so many bytes can be read.
#[inline(always)]
unsafe fn unpack_16<const BITS: usize>(from: *const u8) -> uint8x16_t {
    // SAFETY: the caller's promise; tables of 16 bytes.
    unsafe {
        let packed = vld1q_u8(from);
        let down = vld1q_s16(const { offsets(BITS) }.as_ptr());
        // An index is in two bytes; after a shift down, in the lower one.
        let first = vqtbl1q_u8(packed, vld1q_u8(const { windows(BITS, 0) }.as_ptr()));
        let second = vqtbl1q_u8(packed, vld1q_u8(const { windows(BITS, BITS) }.as_ptr()));
        let first = vshlq_u16(vreinterpretq_u16_u8(first), down);
        let second = vshlq_u16(vreinterpretq_u16_u8(second), down);
        let indices = vuzp1q_u8(vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
        vandq_u8(indices, vdupq_n_u8(((1u16 << BITS) - 1) as u8))
    }
}

/// Returns the entries of 16 indices.
///
/// # Safety
/// The set runs here.
#[inline(always)]
unsafe fn look_up_16<const BITS: usize>(
    book: &[uint8x16x4_t; 4],
    indices: uint8x16_t,
) -> uint8x16_t {
    // SAFETY: the set runs here.
    unsafe {
        match BITS {
            0..=4 => vqtbl1q_u8(book[0].0, indices),
            5 => vqtbl2q_u8(uint8x16x2_t(book[0].0, book[0].1), indices),
            _ => {
                // For an index beyond a part of the table, the byte is unchanged.
                let mut found = vqtbl4q_u8(book[0], indices);
                for (part, book) in (1u8..).zip(&book[1..(1 << BITS) / 64]) {
                    found = vqtbx4q_u8(found, *book, vsubq_u8(indices, vdupq_n_u8(64 * part)));
                }
                found
            }
        }
    }
}

/// # Safety
/// The set runs here; 64 bytes can be read.
#[inline(always)]
unsafe fn book_64(from: *const u8) -> uint8x16x4_t {
    // SAFETY: the set runs here; the caller's promise.
    unsafe {
        uint8x16x4_t(
            vld1q_u8(from),
            vld1q_u8(from.add(16)),
            vld1q_u8(from.add(32)),
            vld1q_u8(from.add(48)),
        )
    }
}

/// Returns the two bytes that contain each of eight indices, from byte `first` on.
const fn windows(bits: usize, first: usize) -> [u8; 16] {
    let mut places = [0; 16];
    let mut at = 0;
    while at < 16 {
        places[at] = (first + at / 2 * bits / 8 + at % 2) as u8;
        at += 1;
    }
    places
}

/// Returns the start of each of eight indices within its two bytes, as a shift to the right.
const fn offsets(bits: usize) -> [i16; 8] {
    let mut offsets = [0; 8];
    let mut at = 0;
    while at < 8 {
        offsets[at] = -((at * bits % 8) as i16);
        at += 1;
    }
    offsets
}

/// Returns the bytes of eight indices next to those of the next.
const fn gather(bits: usize) -> [u8; 16] {
    let mut places = [0xFF; 16];
    let mut at = 0;
    while at < 2 * bits {
        places[at] = (at / bits * 8 + at % bits) as u8;
        at += 1;
    }
    places
}

crate::simd::palette::steps::palette_kernels!(Neon, "neon");
