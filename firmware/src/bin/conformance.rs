//! Runs the conformance suite on the board, prints its table and the stack it took, and fails where either is wrong.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::{heprintln, hprintln};
use tercet_core::conformance::{self, CASE_BYTES};
use tercet_firmware::{exit, stack};

#[entry]
fn main() -> ! {
    let mut meter = stack::Meter::start();
    let mut deepest = (0, "");
    let mut differ = 0;
    conformance::run(&mut |name, digest| {
        // Before the print, whose own frames are not the suite's.
        let bytes = meter.lap();
        if bytes > deepest.0 {
            deepest = (bytes, name);
        }
        hprintln!("{} {:016x}", name, digest);
        hprintln!("# {} bytes of stack", bytes);
        if conformance::expected(name) != Some(digest) {
            heprintln!("{} differs from the committed table", name);
            differ += 1;
        }
        meter.lap();
    });
    let (bytes, name) = deepest;
    hprintln!("# deepest stack: {} bytes, {}", bytes, name);
    let fits = bytes as usize <= CASE_BYTES;
    if !fits {
        heprintln!("{}: a case may take {} bytes of stack", name, CASE_BYTES);
    }
    if fits && differ == 0 {
        exit::success()
    }
    exit::failure()
}
