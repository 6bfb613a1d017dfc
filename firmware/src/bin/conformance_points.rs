//! The conformance suite's clustering and search.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use tercet_core::conformance::Section;
use tercet_firmware::{entry, suite};

#[entry]
fn main() -> ! {
    suite::run(Section::Points)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    suite::panicked(info)
}
