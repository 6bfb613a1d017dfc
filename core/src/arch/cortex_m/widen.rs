//! Activations as pairs of 16 bits, the lanes of `SMLAD`.

use core::arch::asm;

/// Four activations as the lanes (x₀, x₂) and (x₁, x₃), the first of each in the low half.
#[inline(always)]
pub(super) fn even_odd(x: [i8; 4]) -> (u32, u32) {
    let word = u32::from_le_bytes(x.map(|x| x as u8));
    let (even, odd);
    // SAFETY: two instructions of the DSP extension between registers; this module is compiled where there is one.
    unsafe {
        asm!(
            "sxtb16 {even}, {word}",
            "sxtb16 {odd}, {word}, ror #8",
            word = in(reg) word,
            even = out(reg) even,
            odd = lateout(reg) odd,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (even, odd)
}

/// Four activations as the lanes (x₀, x₁) and (x₂, x₃).
#[inline(always)]
pub(super) fn pairs(x: [i8; 4]) -> (u32, u32) {
    let (even, odd) = even_odd(x);
    (
        (even & 0xFFFF) | (odd << 16),
        (even >> 16) | (odd & 0xFFFF_0000),
    )
}

/// The sum of both lanes and `sum`.
#[inline(always)]
pub(super) fn add_lanes(lanes: u32, sum: i32) -> i32 {
    let total;
    // SAFETY: one instruction of the DSP extension between registers; it changes no condition flag, but Q.
    unsafe {
        asm!(
            "smlad {total}, {lanes}, {ones}, {sum}",
            lanes = in(reg) lanes,
            ones = in(reg) 0x0001_0001,
            sum = in(reg) sum,
            total = lateout(reg) total,
            options(pure, nomem, nostack),
        );
    }
    total
}
