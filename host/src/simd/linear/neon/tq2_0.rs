//! TQ2_0 in place. Bits 2·n and 2·n + 1 of byte 32·h + m of a block are the code of value 128·h + 32·n + m, so a vector
//! of activations is multiplied with a field of sixteen bytes.

use std::arch::aarch64::*;

use tercet_core::block::Format;

use super::{Products, quarter};
use crate::simd::blocks::codes;
use crate::simd::linear::{Activations, Line, Start};

/// Bytes of a block.
const BLOCK: usize = 66;
/// Values per block.
const VALUES: usize = 256;

/// Stores the activations in order, and −Σx of each block.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
    let sums = x.as_chunks::<VALUES>().0.iter().map(|x| {
        let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
        Start([-sum; 16])
    });
    activations.start.extend(sums);
}

/// # Safety
/// The set must run here.
#[inline(always)]
pub(in crate::simd) unsafe fn rows<P: Products>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let row_bytes = x.len / VALUES * BLOCK;
    let lines = x.lines.as_chunks::<4>().0;
    for (row, out) in bytes.chunks_exact(row_bytes).zip(out) {
        *out = 0;
        let blocks = row.as_chunks::<BLOCK>().0;
        for ((block, lines), start) in blocks.iter().zip(lines).zip(&x.start) {
            // SAFETY: the set runs here.
            let dot = unsafe { dot::<P>(block, lines) } + start.0[0];
            *out += i64::from(dot) * codes::fixed(Format::Tq2_0.scale(block));
        }
    }
}

/// Returns Σ code · x of a block.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn dot<P: Products>(block: &[u8; BLOCK], lines: &[Line; 4]) -> i32 {
    // SAFETY: the set runs here; a block has four times sixteen bytes of codes.
    unsafe {
        let three = vdupq_n_u8(3);
        let mut sums = [vdupq_n_s32(0); 4];
        for (number, sum) in sums.iter_mut().enumerate() {
            let bytes = vld1q_u8(block.as_ptr().add(16 * number));
            let fields = [
                vandq_u8(bytes, three),
                vandq_u8(vshrq_n_u8::<2>(bytes), three),
                vandq_u8(vshrq_n_u8::<4>(bytes), three),
                vshrq_n_u8::<6>(bytes),
            ];
            for (n, field) in fields.into_iter().enumerate() {
                // Value 128·(number / 2) + 32·n + 16·(number % 2).
                let line = &lines[2 * (number / 2) + n / 2];
                let x = quarter(line, 2 * (n % 2) + number % 2);
                *sum = P::add(*sum, vreinterpretq_s8_u8(field), x);
            }
        }
        let [a, b, c, d] = sums;
        vaddvq_s32(vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d)))
    }
}
