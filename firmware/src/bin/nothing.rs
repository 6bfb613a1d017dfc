//! Start-up and printing only: the share that every other program's figures contain besides its work.

#![no_std]
#![no_main]

use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

#[entry]
fn main() -> ! {
    let mut meter = stack::Meter::start();
    let stack = meter.lap();
    report::footprint(0, stack);
    exit::success()
}
