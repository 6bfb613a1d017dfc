//! Programs that log with defmt.

// The logger: frames through semihosting.
use defmt_semihosting as _;

/// Lets a program log: `defmt::info!` and the other macros then write frames through semihosting, which `cargo
/// firmware` decodes. The panic handler prints the place on stderr and ends the program with exit status 1.
///
/// The program needs the feature `defmt` and its name in `build.rs`. It must not print [`text`](crate::text) to
/// stdout, because the text would come between the frames. It may use [`Text::error`](crate::text::Text::error).
#[macro_export]
macro_rules! logs {
    () => {
        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
            $crate::exit::panicked(info)
        }
    };
}
