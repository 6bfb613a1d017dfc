//! How a program ends: its result becomes QEMU's exit status.

use core::panic::PanicInfo;

use cortex_m_rt::{ExceptionFrame, exception};
use cortex_m_semihosting::{debug, hprintln};

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

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    failure()
}

#[exception]
#[allow(unsafe_code, reason = "cortex-m-rt declares this handler unsafe")]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    hprintln!("hard fault: {:?}", frame);
    failure()
}
