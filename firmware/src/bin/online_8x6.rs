//! A sensor node: 8 clusters of 6 coordinates that follow a stream, without a panic.

#![no_std]
#![no_main]

use core::mem::size_of;

use cortex_m_rt::entry;
use tercet_core::cluster::Online;
use tercet_core::conformance;
use tercet_firmware::{exit, no_panic, report, stack};

no_panic!();

#[entry]
fn main() -> ! {
    static mut CLUSTERS: Online<8, 6> = Online::new();

    let mut meter = stack::Meter::start();
    let digest = conformance::online(CLUSTERS);
    let stack = meter.lap();
    report::report(
        "cluster/online/8x6",
        digest,
        size_of::<Online<8, 6>>(),
        stack,
    );
    exit::success()
}
