//! The end of a program: its result becomes QEMU's exit status.

use core::panic::PanicInfo;

#[cfg(target_arch = "arm")]
use cortex_m_semihosting::debug;
#[cfg(target_arch = "riscv32")]
use riscv_semihosting::debug;

use crate::text::Text;

/// Ends the program with exit status 0.
pub fn success() -> ! {
    end(debug::EXIT_SUCCESS)
}

/// Ends the program with exit status 1.
pub fn failure() -> ! {
    end(debug::EXIT_FAILURE)
}

/// Prints the place of a panic on stderr, without `core::fmt`, and ends the program with exit status 1.
pub fn panicked(info: &PanicInfo<'_>) -> ! {
    let place = info.location();
    Text::error()
        .str("panicked at ")
        .str(place.map_or("", |place| place.file()))
        .str(":")
        .number(place.map_or(0, |place| place.line()))
        .end();
    failure()
}

fn end(status: debug::ExitStatus) -> ! {
    debug::exit(status);
    // Reached only if no debugger listens.
    loop {
        core::hint::spin_loop();
    }
}

/// Ends the program and prints the address of an instruction that the processor refused.
fn refused(address: usize) -> ! {
    Text::error()
        .str("hard fault at ")
        .hex(address as u64)
        .end();
    failure()
}

#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
#[allow(unsafe_code, reason = "cortex-m-rt declares this handler unsafe")]
unsafe fn HardFault(frame: &cortex_m_rt::ExceptionFrame) -> ! {
    refused(frame.pc() as usize)
}

#[cfg(target_arch = "riscv32")]
#[unsafe(export_name = "ExceptionHandler")]
#[allow(unsafe_code, reason = "the name by which riscv-rt calls it")]
fn exception(_: &riscv_rt::TrapFrame) -> ! {
    refused(riscv::register::mepc::read())
}
