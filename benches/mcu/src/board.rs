//! The boards: their clocks and the start of a program.

#![allow(
    unsafe_code,
    reason = "registers of the board, and its first instructions"
)]

use crate::counter::Clock;

/// The clock of the board that this was compiled for.
pub use imp::BoardClock;

#[cfg(any(tercet_board = "mps2", tercet_board = "an505"))]
mod imp {
    use super::Clock;

    // CMSDK timer 0, which counts down. Address and rate are from the boards' application notes and QEMU's models of
    // them. On AN505 it is at its secure address.
    #[cfg(tercet_board = "mps2")]
    const TIMER: (usize, u64) = (0x4000_0000, 40);
    #[cfg(tercet_board = "an505")]
    const TIMER: (usize, u64) = (0x5000_0000, 50);

    const CTRL: *mut u32 = TIMER.0 as *mut u32;
    const VALUE: *mut u32 = (TIMER.0 + 4) as *mut u32;
    const RELOAD: *mut u32 = (TIMER.0 + 8) as *mut u32;

    /// The board's CMSDK timer.
    #[derive(Debug)]
    pub struct BoardClock(());

    impl BoardClock {
        /// Starts it.
        pub fn start() -> Self {
            // SAFETY: Registers of a timer that nothing else here uses.
            unsafe {
                RELOAD.write_volatile(u32::MAX);
                VALUE.write_volatile(u32::MAX);
                CTRL.write_volatile(1);
            }
            Self(())
        }
    }

    impl Clock for BoardClock {
        const TICK_NS: u64 = TIMER.1;

        fn read(&self) -> u32 {
            // SAFETY: A register that may be read at any time.
            !unsafe { VALUE.read_volatile() }
        }
    }
}

#[cfg(tercet_board = "an547")]
mod imp {
    use super::Clock;

    // The FPGA's counter, at its secure address; 20 MHz in QEMU's model.
    const FPGA: usize = 0x5930_2000;
    const COUNTER: *mut u32 = (FPGA + 0x18) as *mut u32;
    const PRESCALE: *mut u32 = (FPGA + 0x1C) as *mut u32;

    /// The board's counter.
    #[derive(Debug)]
    pub struct BoardClock(());

    impl BoardClock {
        /// Sets it to count every period of its clock.
        pub fn start() -> Self {
            // SAFETY: Registers of a counter that nothing else here uses.
            unsafe {
                PRESCALE.write_volatile(0);
                COUNTER.write_volatile(0);
            }
            Self(())
        }
    }

    impl Clock for BoardClock {
        const TICK_NS: u64 = 50;

        fn read(&self) -> u32 {
            // SAFETY: A register that may be read at any time.
            unsafe { COUNTER.read_volatile() }
        }
    }
}

#[cfg(target_arch = "riscv32")]
mod imp {
    use core::arch::{asm, global_asm};

    use super::Clock;

    // Sets up the stack and zeroed statics, and starts the program.
    global_asm!(
        ".section .init, \"ax\"",
        ".global _start",
        "_start:",
        "la sp, _stack_start",
        "la t0, _sbss",
        "la t1, _ebss",
        "1: bgeu t0, t1, 2f",
        "sw zero, 0(t0)",
        "addi t0, t0, 4",
        "j 1b",
        "2: j main",
    );

    /// The processor's count of instructions, which QEMU counts in nanoseconds.
    #[derive(Debug)]
    pub struct BoardClock(());

    impl BoardClock {
        /// It always runs.
        pub fn start() -> Self {
            Self(())
        }
    }

    impl Clock for BoardClock {
        const TICK_NS: u64 = 1;

        fn read(&self) -> u32 {
            let ns: u32;
            // SAFETY: Reads a counter.
            unsafe { asm!("rdinstret {}", out(reg) ns, options(nomem, nostack)) };
            ns
        }
    }
}

/// Makes a function the program; see [`crate::run::run`].
#[macro_export]
macro_rules! program {
    ($body:path) => {
        #[cfg(target_arch = "arm")]
        #[cortex_m_rt::entry]
        fn start() -> ! {
            $crate::run::run($body)
        }

        #[cfg(target_arch = "riscv32")]
        #[unsafe(export_name = "main")]
        #[allow(unsafe_code, reason = "the name that the start-up code jumps to")]
        extern "C" fn start() -> ! {
            $crate::run::run($body)
        }
    };
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
unsafe fn HardFault(frame: &cortex_m_rt::ExceptionFrame) -> ! {
    semihosting::eprintln!("hard fault at {:#010x}", frame.pc());
    semihosting::process::exit(1)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    semihosting::eprintln!("{info}");
    semihosting::process::exit(1)
}
