//! The quantizer and k-means only: 96 points of 6 floats become int8 codes, and the codes 8 clusters, without a panic.

#![no_std]
#![no_main]

use core::mem::size_of;

use cortex_m_rt::entry;
use tercet_core::conformance::Quantized;
use tercet_firmware::{exit, no_panic, report, stack};

no_panic!();

#[entry]
fn main() -> ! {
    static mut MEMORY: Quantized = Quantized::new();

    let mut meter = stack::Meter::start();
    let digest = MEMORY.run();
    let stack = meter.lap();
    report::report(
        "cluster/quantized/8x6",
        digest,
        size_of::<Quantized>(),
        stack,
    );
    exit::success()
}
