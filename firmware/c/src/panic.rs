//! The panic handler of bare metal: it does nothing, since no panic is reachable.

use core::panic::PanicInfo;

unsafe extern "C" {
    fn tercet_panicked() -> !;
}

/// Calls an undefined function. In a release build no call of this handler is reachable, so the linker drops it. A
/// program that could reach a panic would not link.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: A program that would call it does not link, unless it defines the function, as one of an unoptimised
    // build must.
    unsafe { tercet_panicked() }
}
