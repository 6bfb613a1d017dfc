//! The stack that a piece of code takes.

#[cfg(target_arch = "arm")]
use cortex_m_stack as paint;

/// Measures the deepest stack between two calls of [`Meter::lap`].
///
/// The free stack is filled with a paint pattern. The highest word without the pattern shows how deep the calls went.
/// Bytes that a call reserved and never wrote do not show, so a figure is the used stack, not the reserved one.
#[derive(Debug)]
pub struct Meter {
    base: u32,
}

impl Meter {
    /// Starts at the caller's depth.
    pub fn start() -> Self {
        paint::repaint_stack();
        Self {
            base: paint::current_stack_in_use(),
        }
    }

    /// Returns the bytes below the depth of [`Meter::start`] that were written since then or since the last lap.
    pub fn lap(&mut self) -> u32 {
        let deepest = paint::stack_size() - paint::stack_painted();
        paint::repaint_stack();
        deepest.saturating_sub(self.base)
    }
}

/// Does the same as `cortex_m_stack`, between the symbols of riscv-rt's linker script.
#[cfg(target_arch = "riscv32")]
#[allow(
    unsafe_code,
    reason = "memory that only the stack uses, below its pointer"
)]
mod paint {
    use core::arch::asm;

    const PAINT: u32 = 0xCCCC_CCCC;

    unsafe extern "C" {
        /// Where the stack begins, above its first word.
        static _stack_start: u32;
        /// Where it must end, as it grows down.
        static __estack: u32;
    }

    fn start() -> usize {
        (&raw const _stack_start) as usize
    }

    fn end() -> usize {
        (&raw const __estack) as usize
    }

    pub(super) fn stack_size() -> u32 {
        (start() - end()) as u32
    }

    #[inline(always)]
    pub(super) fn current_stack_in_use() -> u32 {
        let pointer: usize;
        // SAFETY: Reads a register.
        unsafe { asm!("mv {}, sp", out(reg) pointer, options(nomem, nostack)) };
        (start() - pointer) as u32
    }

    #[inline(never)]
    pub(super) fn repaint_stack() {
        // SAFETY: Nothing between the stack's end and its pointer is in use, and no interrupt occurs meanwhile.
        unsafe {
            asm!(
                "1: bgeu {at}, sp, 2f",
                "sw {paint}, 0({at})",
                "addi {at}, {at}, 4",
                "j 1b",
                "2:",
                at = inout(reg) end() => _,
                paint = in(reg) PAINT,
            );
        }
    }

    /// Returns the bytes from the stack's end that still have the paint.
    #[inline(never)]
    pub(super) fn stack_painted() -> u32 {
        let first: usize;
        // SAFETY: Only reads memory of the stack.
        unsafe {
            asm!(
                "1: bgeu {at}, sp, 2f",
                "lw {word}, 0({at})",
                "bne {word}, {paint}, 2f",
                "addi {at}, {at}, 4",
                "j 1b",
                "2:",
                at = inout(reg) end() => first,
                word = out(reg) _,
                paint = in(reg) PAINT,
                options(nostack, readonly),
            );
        }
        (first - end()) as u32
    }
}
