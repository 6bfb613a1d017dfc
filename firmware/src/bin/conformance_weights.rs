//! The conformance suite's numbers, quantizers, blocks, files, palettes, layers and networks.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use tercet_core::conformance::Section;
use tercet_firmware::{entry, suite};

#[entry]
fn main() -> ! {
    suite::run(Section::Weights)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    suite::panicked(info)
}
