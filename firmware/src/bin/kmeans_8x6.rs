//! Lloyd's loop from k-means++ seeds: 96 points of 6 coordinates in 8 clusters, without a panic.

#![no_std]
#![no_main]

use core::mem::size_of;

use cortex_m_rt::entry;
use tercet_core::conformance::Memory;
use tercet_firmware::{exit, no_panic, report, stack};

no_panic!();

#[entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();

    let mut meter = stack::Meter::start();
    let digest = MEMORY.run();
    let stack = meter.lap();
    report::report("cluster/lloyd/8x6", digest, size_of::<Memory>(), stack);
    exit::success()
}
