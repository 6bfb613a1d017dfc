//! Reads 32 digits with an integer network in flash and logs each class and digest. Only the board is needed.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use defmt_rtt as _;
use panic_probe as _;
// Links the chip's interrupt vectors.
use stm32f4xx_hal as _;
use tercet_firmware::digits::{self, Memory};

#[entry]
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
        // Not asleep: the probe reads the log through a bus that stops during sleep.
        cortex_m::asm::nop();
    }
}
