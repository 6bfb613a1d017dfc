//! Blocks of Q8_0 of two rows with vectors: 17 instructions for 64 products.

use core::arch::global_asm;

/// Values and bytes of a block.
const VALUES: usize = 32;
const BYTES: usize = 34;

/// Number of elements of `x` per block.
pub(in super::super) const STEP: usize = VALUES;

global_asm!(
    ".arch armv8.1-m.main",
    ".arch_extension mve.fp",
    ".section .text.tercet_mve_q8_0,\"ax\",%progbits",
    ".global tercet_mve_q8_0",
    ".type tercet_mve_q8_0,%function",
    ".thumb_func",
    // r0 and r1: rows, r2: x, r3: blocks, at least 1; on the stack: both scales, both sums.
    "tercet_mve_q8_0:",
    "push {{r4-r8, lr}}",
    "ldr r12, [sp, #24]",
    "mov r4, #0",
    "mov r6, #0",
    "mov r8, r3",
    "2:",
    "ldrh r5, [r0], #2",
    "ldrh r7, [r1], #2",
    "orr r5, r5, r7, lsl #16",
    "cmp r5, r12",
    "bne 3f",
    "vldrb.u8 q0, [r2], #16",
    "vldrb.u8 q1, [r2], #16",
    "vldrb.u8 q2, [r0], #16",
    "vmladava.s8 r4, q0, q2",
    "vldrb.u8 q3, [r0], #16",
    "vmladava.s8 r4, q1, q3",
    "vldrb.u8 q2, [r1], #16",
    "vmladava.s8 r6, q0, q2",
    "vldrb.u8 q3, [r1], #16",
    "vmladava.s8 r6, q1, q3",
    "subs r8, #1",
    "bne 2b",
    "3:",
    "ldr r5, [sp, #28]",
    "strd r4, r6, [r5]",
    "sub r0, r3, r8",
    "pop {{r4-r8, pc}}",
    ".size tercet_mve_q8_0, . - tercet_mve_q8_0",
);

unsafe extern "C" {
    /// Writes the sums of blocks of two rows while their scales are `scales`; returns the number of these blocks.
    fn tercet_mve_q8_0(
        a: *const u8,
        b: *const u8,
        x: *const i8,
        blocks: usize,
        scales: u32,
        out: *mut i32,
    ) -> usize;
}

/// Returns the sums of blocks of two rows, without scales, while both scales are those in `scales` (the first row's
/// in the low half), and the number of these blocks.
pub(in super::super) fn run(a: &[u8], b: &[u8], x: &[i8], scales: u32) -> (i32, i32, usize) {
    let blocks = (x.len() / VALUES).min(a.len() / BYTES).min(b.len() / BYTES);
    let mut sums = [0; 2];
    if blocks == 0 {
        return (0, 0, 0);
    }
    // SAFETY: Both rows have 34 · blocks bytes, which need no alignment, and x has 32 · blocks values, of which there
    // is one block at least; `sums` has room for both. The function keeps the registers that its caller owns.
    let done = unsafe {
        tercet_mve_q8_0(
            a.as_ptr(),
            b.as_ptr(),
            x.as_ptr(),
            blocks,
            scales,
            sums.as_mut_ptr(),
        )
    };
    (sums[0], sums[1], done)
}
