//! Reads 32 digits with an integer network in flash and logs each class and digest. Only the board and a probe are
//! needed.

#![no_std]
#![no_main]

use defmt_rtt as _;
use panic_probe as _;
use tercet_firmware::digits::{self, Memory};
use tercet_pico as _;

#[rp2040_hal::entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let read = digits::read(MEMORY, |digit| {
        defmt::info!(
            "{=u32} {=u64:016x} {=u32}",
            digit.number,
            digit.digest,
            digit.class
        );
    });
    match read {
        Ok(all) => defmt::info!("logits {=u64:016x}", all),
        Err(error) => defmt::error!("{}", error),
    }
    loop {
        cortex_m::asm::nop();
    }
}
