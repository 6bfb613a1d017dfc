//! Products of blocks with int8 activations, exact.
//!
//! A product with a two-bit code is at most 256 in magnitude and one with a four-bit code 1,024; a lane of 16 bits
//! holds the 32 and the 4 of them, respectively, that a block adds there. Products of bytes go to 32 bits one by one.

use std::arch::aarch64::*;

use half::f16;
use tercet_core::block::Format;

use crate::simd::blocks::Dot;
use tercet_core::number::Element;

use super::{interleaved, last_trits, load_bytes, loops, nibbles, quarters, trits};
use crate::simd::blocks::dot::{Terms, blocks, half};

/// Returns the product of a format's blocks; `None` if a scale is not finite.
pub(in crate::simd) fn of(format: Format) -> Option<Dot> {
    Some(match format {
        Format::Tq1_0 => tq1_0,
        Format::Tq2_0 => tq2_0,
        Format::Q2_0 => q2_0,
        Format::Q8_0 => q8_0,
        Format::Q4_0 => q4_0,
        other => return loops::dot(other),
    })
}

#[target_feature(enable = "neon")]
fn tq1_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 54], x: &[i8; 256]| {
        let x = x.as_chunks().0;
        let mut sum = vdupq_n_s16(0);
        for (bytes, (first, step)) in block.as_chunks().0.iter().zip([(0, 2), (1, 2), (10, 1)]) {
            trits(bytes, |lane, codes| {
                sum = add(sum, codes, &x[first + step * lane])
            });
        }
        let last = last_trits([block[48], block[49], block[50], block[51]]);
        vpaddlq_s16(add(sum, last, &x[15]))
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Four, STEP, 256, 54>(bytes, x, 52, dots) }
}

#[target_feature(enable = "neon")]
fn tq2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 66], x: &[i8; 256]| {
        let mut sum = vdupq_n_s16(0);
        for (bytes, x) in block.as_chunks::<32>().0.iter().zip(x.as_chunks::<128>().0) {
            let x = x.as_chunks().0;
            for (part, bytes) in bytes.as_chunks().0.iter().enumerate() {
                for (lane, codes) in quarters(bytes).into_iter().enumerate() {
                    sum = add(sum, codes, &x[2 * lane + part]);
                }
            }
        }
        vpaddlq_s16(sum)
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Four, STEP, 256, 66>(bytes, x, 64, dots) }
}

#[target_feature(enable = "neon")]
fn q2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 18], x: &[i8; 64]| {
        let codes = interleaved(quarters(block.last_chunk().unwrap_or(&[0; 16])));
        let mut sum = vdupq_n_s16(0);
        for (codes, x) in codes.as_chunks().0.iter().zip(x.as_chunks().0) {
            sum = add(sum, load_signed(codes), x);
        }
        vpaddlq_s16(sum)
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Four, STEP, 64, 18>(bytes, x, 0, dots) }
}

#[target_feature(enable = "neon")]
fn q8_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 34], x: &[i8; 32]| {
        let mut sum = vdupq_n_s32(0);
        for (codes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks().0) {
            let (codes, x) = (vreinterpretq_s8_u8(load_bytes(codes)), load_signed(x));
            sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(codes), vget_low_s8(x)));
            sum = vpadalq_s16(sum, vmull_high_s8(codes, x));
        }
        sum
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Four, STEP, 32, 34>(bytes, x, 0, dots) }
}

#[target_feature(enable = "neon")]
fn q4_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 18], x: &[i8; 32]| {
        let codes = nibbles(block.last_chunk().unwrap_or(&[0; 16]));
        let mut sum = vdupq_n_s16(0);
        for (codes, x) in codes.into_iter().zip(x.as_chunks().0) {
            sum = add(sum, codes, x);
        }
        vpaddlq_s16(sum)
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Four, STEP, 32, 18>(bytes, x, 0, dots) }
}

/// Adds 16 products to 8 lanes.
#[inline]
#[target_feature(enable = "neon")]
fn add(sum: int16x8_t, codes: int8x16_t, x: &[i8; 16]) -> int16x8_t {
    let x = load_signed(x);
    vmlal_high_s8(vmlal_s8(sum, vget_low_s8(codes), vget_low_s8(x)), codes, x)
}

#[inline]
#[target_feature(enable = "neon")]
fn load_signed(x: &[i8; 16]) -> int8x16_t {
    // SAFETY: 16 bytes lie there.
    unsafe { vld1q_s8(x.as_ptr()) }
}

/// Computes the products of the blocks of a full or partial step, from the lanes of each.
#[inline]
#[target_feature(enable = "neon")]
fn each<const LEN: usize, const BYTES: usize>(
    blocks: &[[u8; BYTES]],
    x: &[[i8; LEN]],
    dot: impl Fn(&[u8; BYTES], &[i8; LEN]) -> int32x4_t,
) -> int32x4_t {
    let mut sums = [vdupq_n_s32(0); STEP];
    for ((sum, block), x) in sums.iter_mut().zip(blocks).zip(x) {
        *sum = dot(block, x);
    }
    let [a, b, c, d] = sums;
    vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d))
}

/// Blocks at a time.
const STEP: usize = 4;

/// Terms in two parts: the upper part of a scale times a product, in units of 2²⁰, and the lower part times it: 40 bits
/// each.
#[derive(Clone, Copy)]
struct Four {
    upper: int64x2_t,
    lower: int64x2_t,
    /// True if a scale had all ones in the exponent: infinity or NaN.
    wide: bool,
}

impl Terms for Four {
    type Dots = int32x4_t;

    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: the set runs here.
        let none = unsafe { vdupq_n_s64(0) };
        Self {
            upper: none,
            lower: none,
            wide: false,
        }
    }

    #[inline(always)]
    unsafe fn plus(mut self, dots: int32x4_t, scales: *const u8, apart: usize) -> Self {
        let mut floats = [0.0; STEP];
        for (block, float) in floats.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            let bits = unsafe { half(scales.add(block * apart)) };
            self.wide |= bits & 0x7C00 == 0x7C00;
            *float = Element::to_f32(f16::from_bits(bits));
        }
        // SAFETY: the set runs here; four floats lie there.
        unsafe {
            // The part below 2²⁰, then the rest, in units of 2⁻²⁰: every step is exact.
            let scales = vmulq_n_f32(vld1q_f32(floats.as_ptr()), 16.0);
            let upper = vcvtq_s32_f32(scales);
            let rest = vsubq_f32(scales, vcvtq_f32_s32(upper));
            let lower = vcvtq_s32_f32(vmulq_n_f32(rest, 1_048_576.0));
            self.upper = products(self.upper, upper, dots);
            self.lower = products(self.lower, lower, dots);
        }
        self
    }

    #[inline(always)]
    unsafe fn total(self) -> Option<i128> {
        if self.wide {
            return None;
        }
        // SAFETY: the set runs here.
        let (upper, lower) = unsafe { (vaddvq_s64(self.upper), vaddvq_s64(self.lower)) };
        Some((i128::from(upper) << 20) + i128::from(lower))
    }
}

/// Adds the products of lanes, those of the lower half and those of the upper.
#[inline]
#[target_feature(enable = "neon")]
fn products(sums: int64x2_t, a: int32x4_t, b: int32x4_t) -> int64x2_t {
    vmlal_high_s32(vmlal_s32(sums, vget_low_s32(a), vget_low_s32(b)), a, b)
}
