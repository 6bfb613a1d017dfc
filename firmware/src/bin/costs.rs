//! Counts the instructions of each operation of the edge profile.

#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;
use tercet_core::cluster::Online;
use tercet_firmware::clock::Counter;
use tercet_firmware::{exit, logs};

logs!();

#[entry]
fn main() -> ! {
    static mut CLUSTERS: Online<8, 6> = Online::new();

    let Some(counter) = Counter::start() else {
        defmt::error!("the board's timer does not follow instructions: run with -icount shift=7");
        exit::failure()
    };
    defmt::info!(
        "instructions {=u32}",
        counter.count(&mut || {
            black_box(&*CLUSTERS);
        })
    );
    exit::success()
}
