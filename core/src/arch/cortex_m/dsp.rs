//! Instructions of the DSP extension that have no stable name in Rust, one function each.
//!
//! A word is two 16-bit lanes. Besides the result, only the sticky flag Q changes; nothing here reads it.

#![allow(unsafe_code, reason = "instructions are assembler")]

use core::arch::asm;

/// 1 in both lanes, which adds the lanes up.
pub(super) const ONES: u32 = 0x1_0001;

macro_rules! lanes {
    ($($(#[$doc:meta])* $name:ident($($word:ident),+) $line:literal;)+) => {
        $($(#[$doc])*
        #[inline(always)]
        pub(super) fn $name($($word: u32),+) -> u32 {
            let out: u32;
            // SAFETY: An instruction on registers; it cannot fault.
            unsafe {
                asm!($line, $($word = in(reg) $word,)+ out = lateout(reg) out,
                    options(pure, nomem, nostack, preserves_flags));
            }
            out
        })+
    };
}

lanes! {
    /// Returns bytes 0 and 2, sign-extended.
    even_bytes(word) "sxtb16 {out}, {word}";
    /// Returns bytes 1 and 3, sign-extended.
    odd_bytes(word) "sxtb16 {out}, {word}, ror #8";
    /// Returns a − b in each lane, modulo 2¹⁶.
    subtract(a, b) "ssub16 {out}, {a}, {b}";
    /// Returns the lower lanes of a and b.
    lower(a, b) "pkhbt {out}, {a}, {b}, lsl #16";
    /// Returns the upper lanes of a and b.
    upper(a, b) "pkhtb {out}, {b}, {a}, asr #16";
}

/// Returns sum + a.0 · b.0 + a.1 · b.1 for signed lanes, modulo 2³².
#[inline(always)]
pub(super) fn multiply_add(sum: i32, a: u32, b: u32) -> i32 {
    let out: i32;
    // SAFETY: An instruction on registers; it cannot fault. Q is no part of the flags that compilers keep.
    unsafe {
        asm!("smlad {out}, {a}, {b}, {sum}", a = in(reg) a, b = in(reg) b, sum = in(reg) sum, out = lateout(reg) out,
            options(pure, nomem, nostack));
    }
    out
}

/// Returns four values as a word, the first lowest.
#[inline(always)]
pub(super) fn word(values: &[i8; 4]) -> u32 {
    u32::from_le_bytes(values.map(|value| value as u8))
}

/// Returns int8 values as bytes.
#[cfg(not(tercet_mve))]
pub(super) fn bytes(values: &[i8]) -> &[u8] {
    // SAFETY: Every pattern of an i8 is a u8, of the same size and alignment.
    let (_, bytes, _) = unsafe { values.align_to() };
    bytes
}

/// Returns up to four values as a word, with 0 for missing ones.
#[inline]
pub(super) fn partial_word(values: &[i8]) -> u32 {
    match *values {
        [a, b, c, d] => word(&[a, b, c, d]),
        [a, b, c] => word(&[a, b, c, 0]),
        [a, b] => word(&[a, b, 0, 0]),
        [a] => word(&[a, 0, 0, 0]),
        _ => 0,
    }
}

/// Calls `each` with `values` as words, the last padded with 0.
#[inline(always)]
pub(super) fn for_each_word(values: &[i8], mut each: impl FnMut(u32)) {
    let mut words = values.chunks_exact(4);
    for values in &mut words {
        if let Some(values) = values.first_chunk() {
            each(word(values));
        }
    }
    if !words.remainder().is_empty() {
        each(partial_word(words.remainder()));
    }
}
