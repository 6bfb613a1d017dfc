//! Two ternary rows in each 16-bit lane, eight rows per group: eight columns per vector. See
//! [`lanes`](crate::simd::linear::lanes).

use std::arch::aarch64::*;

use super::{Products, quarter};
use crate::simd::linear::{Activations, lanes};

/// Bytes of 64 columns of a group.
const BLOCK: usize = 128;

/// Bytes k of four words side by side.
const BYTES_OF_WORDS: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// # Safety
/// The set must run here.
#[inline(always)]
pub(in crate::simd) unsafe fn rows<P: Products>(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(64) * BLOCK;
    let lines = x.lines.as_chunks::<3>().0;
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(8)) {
        // SAFETY: the set runs here; sixteen bytes lie where they are loaded from, and four sums where they are stored.
        let fields = unsafe {
            let order = vld1q_u8(BYTES_OF_WORDS.as_ptr());
            let (upper_bits, three) = (vdupq_n_u8(0x88), vdupq_n_u8(3));
            let mut sums = [vdupq_n_s32(0); 4];
            for (bytes, [a, b, c]) in group.as_chunks::<64>().0.iter().zip(lines) {
                for number in 0..4 {
                    let words = vld1q_u8(bytes.as_ptr().add(16 * number));
                    let words = veorq_u8(vqtbl1q_u8(words, order), upper_bits);
                    let fields = [
                        (vandq_u8(words, three), a),
                        (vandq_u8(vshrq_n_u8::<2>(words), three), b),
                        (vandq_u8(vshrq_n_u8::<4>(words), three), a),
                        (vshrq_n_u8::<6>(words), c),
                    ];
                    for (sum, (field, line)) in sums.iter_mut().zip(fields) {
                        let x = quarter(line, number);
                        *sum = P::add(*sum, vreinterpretq_s8_u8(field), x);
                    }
                }
            }
            let mut fields = [[0; 4]; 4];
            for (field, sum) in fields.iter_mut().zip(sums) {
                vst1q_s32(field.as_mut_ptr(), sum);
            }
            fields
        };
        let rows = lanes::rows(fields, &x.start[0]);
        out.copy_from_slice(&rows[..out.len()]);
    }
}
