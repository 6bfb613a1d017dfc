//! How a program ends: its result becomes QEMU's exit status.

use core::panic::PanicInfo;

use cortex_m_rt::{ExceptionFrame, exception};
use cortex_m_semihosting::debug;

use crate::text::Text;

/// Ends the program with exit status 0.
pub fn success() -> ! {
    end(debug::EXIT_SUCCESS)
}

/// Ends the program with exit status 1.
pub fn failure() -> ! {
    end(debug::EXIT_FAILURE)
}

/// Says on stderr where a program panicked, without `core::fmt`, and ends it with exit status 1.
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
    // Reached only where no debugger listens.
    loop {
        cortex_m::asm::bkpt();
    }
}

#[exception]
#[allow(unsafe_code, reason = "cortex-m-rt declares this handler unsafe")]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    Text::error()
        .str("hard fault at ")
        .hex(frame.pc().into())
        .end();
    failure()
}
