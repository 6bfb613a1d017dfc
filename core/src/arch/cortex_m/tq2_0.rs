//! TQ2_0 as it lies in a file: two rows at once, their codes brought into common 16-bit lanes, so that one `AND` and one
//! `SMLAD` do two rows and two columns. Weights may lie at any address.
//!
//! A word of a row holds sixteen codes in bits 2s and 2s + 1, s = 4 i + n: byte i, and column i + 32 n of the word's. Of the words
//! A and B of two rows, with R the word B turned left by 14 bits, A ^ R masked to its even places and added back by `EOR`
//! gives
//!     U: at even s code s of A, at odd s + 7 code s of B; s even,
//!     V: at odd s code s of A, at even s + 7 code s of B; s odd,
//! places counted modulo 16. Turned right by 2s, bits 0–1 and 14–15 of the low half are then code s of both rows, and those
//! of the high half code s + 8: the columns c and c + 2 where bytes i and i + 2 meet.
//!
//! Scratch: for each 32 columns (two words) a bias, then for each word the pairs (x_c, x_{c + 2}) of s = 0, 2, 4, 6, 1, 3, 5, 7.
//!
//! Why it is exact. Bits 14–15 are read as two's complement once B's upper bits are flipped: code k there stands for k − 2. A weight
//! is a = k − 1 (−1..=2), so lane times activation is (a + 1)·x + 2¹⁴·(b − 1)·x, and an accumulator that began with
//! 8192 − Σx + 2¹⁴·Σx holds, modulo 2³²,
//!     F + 2¹⁴·S_b,  F = 8192 + Σa·x.
//! Over 32 columns |Σa·x| and |S_b| ≤ 32·254 = 8128, so the low 14 bits are F, and what is above them is S_b. A block's sums
//! are at most 2¹⁶, its products with 11 bits of scale below 2²⁷; `SMLAL` shifts them by up to 29 and adds them in 64 bits,
//! where a [`Matrix`] keeps their sum below 2⁶².

use core::arch::asm;

use super::widen;
use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const VALUES: usize = 256;
const BYTES: usize = 66;
/// Scratch words of 32 columns.
const STREAM: usize = 17;
/// What keeps the low field from being negative.
const OFFSET: i32 = 1 << 13;

/// [`crate::scalar::linear::blocks`] of TQ2_0. `scratch` has [`Matrix::scratch_len`] words.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let blocks = matrix.cols() / VALUES;
    let Some(scratch) = scratch.get_mut(..matrix.cols() / 32 * STREAM) else {
        return false;
    };
    if blocks == 0 {
        return false;
    }
    widen_blocks(x.get(), scratch);
    let rows = matrix.bytes().chunks(2 * blocks * BYTES);
    for rows in rows {
        let (first, second) = rows.split_at_checked(blocks * BYTES).unwrap_or_default();
        // The last of an odd number keeps itself company.
        let company = if second.is_empty() { first } else { second };
        out.wide(&two_rows(first, company, scratch));
    }
    true
}

/// Biases and pairs in the order of the codes.
fn widen_blocks(x: &[i8], stream: &mut [u32]) {
    let halves = x.chunks_exact(128).zip(stream.chunks_exact_mut(4 * STREAM));
    for (x, stream) in halves {
        for (at, stream) in stream.chunks_exact_mut(STREAM).enumerate() {
            let Some((bias, stream)) = stream.split_first_mut() else {
                continue;
            };
            let mut sum = 0;
            for (word, pairs) in stream.chunks_exact_mut(8).enumerate() {
                // Column n of bytes 0 and 2 is place n, of bytes 1 and 3 place n + 4; even places come first.
                for (n, (a, b)) in [(0, 2), (4, 6), (1, 3), (5, 7)].into_iter().enumerate() {
                    let four = x
                        .get(8 * at + 4 * word + 32 * n..)
                        .and_then(<[i8]>::first_chunk);
                    let (even, odd) = widen::even_odd(four.copied().unwrap_or_default());
                    sum = widen::add_lanes(odd, widen::add_lanes(even, sum));
                    if let Some(pair) = pairs.get_mut(a) {
                        *pair = even;
                    }
                    if let Some(pair) = pairs.get_mut(b) {
                        *pair = odd;
                    }
                }
            }
            *bias = (OFFSET - sum + (sum << 14)) as u32;
        }
    }
}

/// Both rows' words: U to r6, V to r5.
macro_rules! load {
    () => {
        "
        ldr r5, [r11], #4
        ldr r6, [r12], #4
        eor r6, r6, #0xAAAAAAAA
        eor r7, r5, r6, ror #18
        and r7, r7, #0x33333333
        eor r5, r5, r7
        eor r6, r7, r6, ror #18
        "
    };
}

/// Four places of a word times the pairs in r1 to r4; r0 is the accumulator, r10 the mask.
macro_rules! four_places {
    ($word:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            "and r7, r10, ",
            $word,
            ", ror #",
            $a,
            "\n",
            "smlad r0, r7, r1, r0\n",
            "and r7, r10, ",
            $word,
            ", ror #",
            $b,
            "\n",
            "smlad r0, r7, r2, r0\n",
            "and r7, r10, ",
            $word,
            ", ror #",
            $c,
            "\n",
            "smlad r0, r7, r3, r0\n",
            "and ",
            $word,
            ", r10, ",
            $word,
            ", ror #",
            $d,
            "\n",
            "smlad r0, ",
            $word,
            ", r4, r0\n",
        )
    };
}

/// 32 columns: their sums are added to r8 (with [`OFFSET`]) and r9.
macro_rules! columns {
    () => {
        concat!(
            "ldm lr!, {{r0-r4}}\n",
            load!(),
            "and r7, r10, r6\n",
            "smlad r0, r7, r1, r0\n",
            "and r7, r10, r6, ror #4\n",
            "smlad r0, r7, r2, r0\n",
            "and r7, r10, r6, ror #8\n",
            "smlad r0, r7, r3, r0\n",
            "and r6, r10, r6, ror #12\n",
            "smlad r0, r6, r4, r0\n",
            "ldm lr!, {{r1-r4}}\n",
            four_places!("r5", 2, 6, 10, 14),
            "ldm lr!, {{r1-r4}}\n",
            load!(),
            "and r7, r10, r6\n",
            "smlad r0, r7, r1, r0\n",
            "and r7, r10, r6, ror #4\n",
            "smlad r0, r7, r2, r0\n",
            "and r7, r10, r6, ror #8\n",
            "smlad r0, r7, r3, r0\n",
            "and r6, r10, r6, ror #12\n",
            "smlad r0, r6, r4, r0\n",
            "ldm lr!, {{r1-r4}}\n",
            four_places!("r5", 2, 6, 10, 14),
            "ubfx r7, r0, #0, #14\n",
            "add r9, r9, r0, asr #14\n",
            "add r8, r8, r7\n",
        )
    };
}

/// Reads a block's scale and adds it times the block's sum to the total on the stack.
macro_rules! scale {
    ($row:literal, $sum:literal, $total:literal) => {
        concat!(
            "ldrsh r0, [",
            $row,
            "], #2\n",
            "ldrd r4, r5, [sp, #",
            $total,
            "]\n",
            "ubfx r1, r0, #10, #5\n",
            "ubfx r2, r0, #0, #10\n",
            // ±1.
            "asr r3, r0, #31\n",
            "orr r3, r3, #1\n",
            // Subnormals count in the same unit as the first normal ones, and have no bit more.
            "cbz r1, 4f\n",
            "sub r1, r1, #1\n",
            "orr r2, r2, #1024\n",
            "4:\n",
            "lsl r3, r3, r1\n",
            "mul r2, r2, ",
            $sum,
            "\n",
            "smlal r4, r5, r2, r3\n",
            "strd r4, r5, [sp, #",
            $total,
            "]\n",
        )
    };
}

/// The sums of two rows of whole blocks.
#[inline(never)]
fn two_rows(first: &[u8], second: &[u8], stream: &[u32]) -> [i64; 2] {
    let mut sums = [0i64; 2];
    let len = stream.len() / (8 * STREAM) * BYTES;
    if len == 0 || first.len() != len || second.len() != len {
        return sums;
    }
    // SAFETY: reads `stream` from its start to its end, and both rows to theirs, which hold as many blocks; writes `sums`.
    // `LDR` and `LDRSH` take any address. The stack comes back as it was, and so do r6, r7 and r9, which cannot be operands.
    unsafe {
        asm!(
            "push {{r0, r1, r6, r7, r9}}",
            "sub sp, sp, #20",
            "mov r2, #0",
            "strd r2, r2, [sp]",
            "strd r2, r2, [sp, #8]",
            "2:",
            "add r0, r11, #64",
            "str r0, [sp, #16]",
            "mov r8, #0",
            "mov r9, #0",
            "3:",
            columns!(),
            columns!(),
            "ldr r7, [sp, #16]",
            "cmp r11, r7",
            "bne 3b",
            // Eight offsets.
            "sub r8, r8, #0x10000",
            scale!("r11", "r8", 0),
            scale!("r12", "r9", 8),
            "ldr r7, [sp, #20]",
            "cmp lr, r7",
            "bne 2b",
            "pop {{r0-r4}}",
            "pop {{r4, r5}}",
            "stm r5, {{r0-r3}}",
            "pop {{r6, r7, r9}}",
            inout("r0") stream.as_ptr_range().end => _,
            inout("r1") sums.as_mut_ptr() => _,
            out("r2") _,
            out("r3") _,
            out("r4") _,
            out("r5") _,
            out("r8") _,
            in("r10") 0xC003_C003u32,
            inout("r11") first.as_ptr() => _,
            inout("r12") second.as_ptr() => _,
            inout("lr") stream.as_ptr() => _,
        );
    }
    sums
}
