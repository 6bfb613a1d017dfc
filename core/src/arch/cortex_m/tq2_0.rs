//! TQ2_0 as in a file: two rows at once, with their codes moved into common 16-bit lanes, so that one `AND` and one
//! `SMLAD` process two rows and two columns. Weights may have any address.
//!
//! A word of a row holds sixteen codes in bits 2s and 2s + 1, s = 4 i + n: byte i, and column i + 32 n of the word's.
//! Let A and B be the words of two rows, and R the word B rotated left by 14 bits. A ^ R masked to its even places,
//! and added back by `EOR`, gives
//!     U: at even s code s of A, at odd s + 7 code s of B; s even,
//!     V: at odd s code s of A, at even s + 7 code s of B; s odd,
//! with places counted modulo 16. Rotated right by 2s, bits 0–1 and 14–15 of the low half are then code s of both
//! rows, and those of the high half are code s + 8: the columns c and c + 2 of bytes i and i + 2.
//!
//! Scratch: for each 32 columns (two words) a bias, then for each word the pairs (x_c, x_{c + 2}) of s = 0, 2, 4, 6,
//! 1, 3, 5, 7.
//!
//! Proof of exactness: bits 14–15 are read as two's complement once B's upper bits are flipped; code k there means k
//! − 2. A weight is a = k − 1 (−1..=2), so lane times activation is (a + 1)·x + 2¹⁴·(b − 1)·x. An accumulator that
//! began with 8192 − Σx + 2¹⁴·Σx holds, modulo 2³²,
//!     F + 2¹⁴·S_b, F = 8192 + Σa·x.
//! Over 32 columns |Σa·x| and |S_b| ≤ 32·254 = 8128, so the low 14 bits are F, and the bits above them are S_b. The
//! bias has 2³¹ more, so that these are S_b + 2¹⁷ as 18 unsigned bits. The total of B begins a block with 2¹⁶ −
//! 8·2¹⁷, so it is negative until the block's eighth step, as |ΣS_b| ≤ 65024 < 2¹⁶, and its sign ends the loop. A
//! block's sums are below 2¹⁶, and their products with 11 bits of scale below 2²⁷. `SMLAL` shifts them by up to 29
//! and adds them in 64 bits, because a [`Matrix`] keeps their sum below 2⁶².

use core::arch::asm;

use super::batch::Batch;
use super::dsp::{ONES, even_bytes, multiply_add, odd_bytes, word};
use crate::linear::{I8Sym, Matrix, Sums};

/// Values and bytes of a block.
const VALUES: usize = 256;
const BYTES: usize = 66;
/// Scratch words per 32 columns.
const STREAM: usize = 17;
/// Offset that keeps the low field from being negative.
const OFFSET: i32 = 1 << 13;
/// Number that counts the steps.
const COUNT: u32 = 1 << 31;

/// Same contract as [`crate::arch::plain::linear::blocks`], for TQ2_0. `scratch` has at least [`Matrix::scratch_len`]
/// words.
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
    widen(x.get(), scratch);
    let mut out = Batch::new(out);
    let rows = matrix.bytes().chunks((2 * blocks * BYTES).max(1));
    for rows in rows {
        let (first, second) = rows.split_at_checked(blocks * BYTES).unwrap_or_default();
        // The last of an odd number of rows is paired with itself.
        let company = if second.is_empty() { first } else { second };
        let [sum, next] = two_rows(first, company, scratch);
        out.push(sum);
        out.push(next);
    }
    out.flush();
    true
}

/// Writes biases and pairs, in the order of the codes.
fn widen(x: &[i8], stream: &mut [u32]) {
    let halves = x.chunks_exact(128).zip(stream.chunks_exact_mut(4 * STREAM));
    for (x, stream) in halves {
        for (at, stream) in stream.chunks_exact_mut(STREAM).enumerate() {
            let Some((bias, stream)) = stream.split_first_mut() else {
                continue;
            };
            let mut sum = 0;
            for (at, pairs) in (2 * at..).zip(stream.chunks_exact_mut(8)) {
                // The word's columns n: bytes 0 and 2 are place n, bytes 1 and 3 place n + 4.
                let columns = |n: usize| {
                    let x = x.get(32 * n + 4 * at..).and_then(<[i8]>::first_chunk);
                    let x = word(x.unwrap_or(&[0; 4]));
                    (even_bytes(x), odd_bytes(x))
                };
                let ((a, e), (b, f), (c, g), (d, h)) =
                    (columns(0), columns(1), columns(2), columns(3));
                let places = [a, c, e, g, b, d, f, h];
                pairs.copy_from_slice(&places);
                sum = places
                    .iter()
                    .fold(sum, |sum, &pair| multiply_add(sum, pair, ONES));
            }
            *bias = (OFFSET - sum + (sum << 14)) as u32 ^ COUNT;
        }
    }
}

/// Loads both rows' words: U to r6, V to r5.
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

/// Four places of a word times the pairs in r1 to r4. r0 is the accumulator, r10 is the mask; r7 and the word are
/// overwritten.
macro_rules! four_places {
    ($word:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            "and r7, r10, ",
            $word,
            $a,
            "\n",
            "smlad r0, r7, r1, r0\n",
            "and r7, r10, ",
            $word,
            $b,
            "\n",
            "smlad r0, r7, r2, r0\n",
            "and r7, r10, ",
            $word,
            $c,
            "\n",
            "smlad r0, r7, r3, r0\n",
            "and ",
            $word,
            ", r10, ",
            $word,
            $d,
            "\n",
            "smlad r0, ",
            $word,
            ", r4, r0\n",
        )
    };
}

/// Sixteen columns, with the first pairs in r1 to r4.
macro_rules! word {
    () => {
        concat!(
            load!(),
            four_places!("r6", "", ", ror #4", ", ror #8", ", ror #12"),
            "ldm lr!, {{r1-r4}}\n",
            four_places!("r5", ", ror #2", ", ror #6", ", ror #10", ", ror #14"),
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
            // Subnormals have the unit of the smallest normal numbers, without the hidden bit.
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

/// Returns the sums of two rows of whole blocks.
#[inline(never)]
fn two_rows(first: &[u8], second: &[u8], stream: &[u32]) -> [i64; 2] {
    let mut sums = [0i64; 2];
    let len = stream.len() / (8 * STREAM) * BYTES;
    if len == 0 || first.len() != len || second.len() != len {
        return sums;
    }
    // SAFETY: reads `stream` from its start to its end, and both rows to theirs, which hold as many blocks; writes
    // `sums`. `LDR` and `LDRSH` take any address. The stack comes back as it was, and so do r6, r7 and r9, which
    // cannot be operands.
    unsafe {
        asm!(
            "push {{r0, r1, r6, r7, r9}}",
            "sub sp, sp, #16",
            "mov r2, #0",
            "strd r2, r2, [sp]",
            "strd r2, r2, [sp, #8]",
            "2:",
            "mov r8, #0",
            // 2¹⁶ minus eight steps of the count.
            "mov r9, #0",
            "movt r9, #0xFFF1",
            "3:",
            "ldm lr!, {{r0-r4}}",
            word!(),
            "ldm lr!, {{r1-r4}}",
            word!(),
            "ubfx r7, r0, #0, #14",
            "add r8, r8, r7",
            "adds r9, r9, r0, lsr #14",
            "bmi 3b",
            "sub r8, r8, #0x10000",
            "sub r9, r9, #0x10000",
            scale!("r11", "r8", 0),
            scale!("r12", "r9", 8),
            "ldr r7, [sp, #16]",
            "cmp lr, r7",
            "bne 2b",
            "pop {{r0-r4}}",
            "ldr r4, [sp], #4",
            "stm r4, {{r0-r3}}",
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
