//! Pieces of code of known length.

#![allow(unsafe_code, reason = "only in assembly is the length of code known")]

use core::arch::asm;

macro_rules! nops {
    ($($count:literal)*) => {
        [$(($count, &mut || {
            // SAFETY: `nop` changes nothing.
            unsafe { asm!(".rept {}", "nop", ".endr", const $count, options(nomem, nostack, preserves_flags)) };
        })),*]
    };
}

/// Calls `each` with lengths in instructions and code of these lengths.
pub(crate) fn try_each<E>(
    each: impl FnMut((u64, &mut dyn FnMut())) -> Result<(), E>,
) -> Result<(), E> {
    let blocks: [(u64, &mut dyn FnMut()); 6] = nops!(0 1 2 3 100 1000);
    blocks.into_iter().try_for_each(each)
}
