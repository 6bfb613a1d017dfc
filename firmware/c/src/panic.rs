//! What bare metal does where Rust would panic: nothing, since no panic can be reached.

use core::panic::PanicInfo;

unsafe extern "C" {
    fn tercet_panicked() -> !;
}

/// Calls a function that nobody defines: in a release build no call of it is reachable, the linker drops this
/// handler, and a program that could reach a panic would not link.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: A program that would call it does not link, unless it defines the function, as one of an unoptimised build must.
    unsafe { tercet_panicked() }
}
