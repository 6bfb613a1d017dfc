//! Programs that cannot panic.

/// Defines a panic handler that does not link: it calls an undefined function, so if any panic is reachable, the
/// linker names it. Needs optimisation, since debug builds check for overflows.
#[macro_export]
macro_rules! no_panic {
    () => {
        #[panic_handler]
        #[allow(unsafe_code, reason = "a function that nobody defines")]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            unsafe extern "C" {
                fn a_panic_can_be_reached() -> !;
            }
            // SAFETY: A program that would call it does not link.
            unsafe { a_panic_can_be_reached() }
        }
    };
}
