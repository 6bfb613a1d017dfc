//! Counts the instructions of pieces of code with a timer of the board.
//!
//! `cargo firmware` runs programs that count under QEMU's `-icount shift=7`. Then 128 ns of the board's time pass with
//! every instruction, whatever the host does meanwhile. A difference of two readings is off by less than one tick, and
//! the timers here tick at least 2.04 times per instruction. So the nearest whole number of instructions is the true
//! one.

#![allow(
    unsafe_code,
    reason = "registers of the board, and code of known length"
)]

use core::arch::asm;
use core::sync::atomic::{Ordering, compiler_fence};

/// The board's time per instruction, as the logarithm of half nanoseconds: 256 of them.
const INSTRUCTION: u32 = 8;

/// Counts instructions.
#[derive(Debug)]
pub struct Counter {
    /// Instructions between two readings without any work between them.
    overhead: u32,
}

impl Counter {
    /// Starts the board's timer, and counts blocks of 0, 1, 10 and 100 `nop`s with it.
    ///
    /// Returns `None` if one is miscounted. Then the timer does not follow instructions, as without `-icount shift=7`
    /// or on hardware.
    pub fn start() -> Option<Self> {
        timer::start();
        let mut counter = Self { overhead: 0 };
        counter.overhead = counter.count(&mut || ());
        let exact = counter.count(&mut nops::<0>) == 0
            && counter.count(&mut nops::<1>) == 1
            && counter.count(&mut nops::<10>) == 10
            && counter.count(&mut nops::<100>) == 100;
        exact.then_some(counter)
    }

    /// Returns the instructions of `work`, less those of an empty closure, modulo 2³² ticks of the timer: 1.3 · 10⁹
    /// instructions on MPS2 boards, 2.1 · 10⁹ on the micro:bit, 3.3 · 10⁷ on RISC-V.
    ///
    /// The closure is called through a pointer, so that the surrounding code is the same for all closures.
    #[inline(never)]
    pub fn count(&self, work: &mut dyn FnMut()) -> u32 {
        let from = timer::read();
        compiler_fence(Ordering::SeqCst);
        work();
        compiler_fence(Ordering::SeqCst);
        let to = timer::read();
        let time = u64::from(to.wrapping_sub(from)) * timer::TICK;
        let instructions = (time + (1 << (INSTRUCTION - 1))) >> INSTRUCTION;
        (instructions as u32).saturating_sub(self.overhead)
    }
}

fn nops<const N: usize>() {
    // SAFETY: `nop` changes nothing.
    unsafe { asm!(".rept {}", "nop", ".endr", const N, options(nomem, nostack, preserves_flags)) };
}

#[cfg(any(
    tercet_board = "an385",
    tercet_board = "an386",
    tercet_board = "an500",
    tercet_board = "an505"
))]
mod timer {
    //! CMSDK timer 0 of the MPS2 boards, which counts down; on AN505 at its secure address.

    const TIMER: usize = if cfg!(tercet_board = "an505") {
        0x5000_0000
    } else {
        0x4000_0000
    };
    const CTRL: *mut u32 = TIMER as *mut u32;
    const VALUE: *mut u32 = (TIMER + 4) as *mut u32;
    const RELOAD: *mut u32 = (TIMER + 8) as *mut u32;

    /// Half nanoseconds per tick: 20 MHz on AN505, 25 MHz on the others.
    pub(super) const TICK: u64 = if cfg!(tercet_board = "an505") {
        100
    } else {
        80
    };

    pub(super) fn start() {
        // SAFETY: Registers of a timer that nothing else here uses.
        unsafe {
            RELOAD.write_volatile(u32::MAX);
            VALUE.write_volatile(u32::MAX);
            CTRL.write_volatile(1);
        }
    }

    pub(super) fn read() -> u32 {
        // SAFETY: A register that may be read at any time.
        !unsafe { VALUE.read_volatile() }
    }
}

#[cfg(tercet_board = "an547")]
mod timer {
    //! The counter in AN547's FPGA, at its secure address.

    const FPGA: usize = 0x5930_2000;
    const COUNTER: *mut u32 = (FPGA + 0x18) as *mut u32;
    const PRESCALE: *mut u32 = (FPGA + 0x1C) as *mut u32;

    /// Half nanoseconds per tick of 20 MHz (in QEMU's model).
    pub(super) const TICK: u64 = 100;

    pub(super) fn start() {
        // SAFETY: Registers of a counter that nothing else here uses.
        unsafe {
            PRESCALE.write_volatile(0);
            COUNTER.write_volatile(0);
        }
    }

    pub(super) fn read() -> u32 {
        // SAFETY: A register that may be read at any time.
        unsafe { COUNTER.read_volatile() }
    }
}

#[cfg(tercet_board = "microbit")]
mod timer {
    //! TIMER0 of the micro:bit's nRF51822, its only timer that is 32 bits wide.

    const TIMER: usize = 0x4000_8000;
    const START: *mut u32 = TIMER as *mut u32;
    const CAPTURE: *mut u32 = (TIMER + 0x40) as *mut u32;
    const BITMODE: *mut u32 = (TIMER + 0x508) as *mut u32;
    const PRESCALER: *mut u32 = (TIMER + 0x510) as *mut u32;
    const CAPTURED: *mut u32 = (TIMER + 0x540) as *mut u32;

    /// Half nanoseconds per tick of 16 MHz.
    pub(super) const TICK: u64 = 125;

    pub(super) fn start() {
        // SAFETY: Registers of a timer that nothing else here uses.
        unsafe {
            BITMODE.write_volatile(3);
            PRESCALER.write_volatile(0);
            START.write_volatile(1);
        }
    }

    pub(super) fn read() -> u32 {
        // SAFETY: A task that copies the count into a register, and that register.
        unsafe {
            CAPTURE.write_volatile(1);
            CAPTURED.read_volatile()
        }
    }
}

#[cfg(tercet_board = "virt")]
mod timer {
    //! RISC-V's count of instructions, which QEMU counts in nanoseconds.

    use core::arch::asm;

    /// Half nanoseconds per nanosecond.
    pub(super) const TICK: u64 = 2;

    pub(super) fn start() {}

    pub(super) fn read() -> u32 {
        let count: u32;
        // SAFETY: Reads a counter.
        unsafe { asm!("rdinstret {}", out(reg) count, options(nomem, nostack)) };
        count
    }
}
