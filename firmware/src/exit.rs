//! How a program ends: its result becomes QEMU's exit status.

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
    Text::new()
        .str("hard fault at ")
        .hex(frame.pc().into())
        .end();
    failure()
}
