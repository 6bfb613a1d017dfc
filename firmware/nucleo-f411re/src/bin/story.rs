//! Writes a text with the bundled language model to the console of the probe: USART2 (TX PA2), 115,200 baud, 8N1. Then
//! prints the digest of all logits and the cycles per token. Only the board is needed.

#![no_std]
#![no_main]

use core::fmt::Write;

use cortex_m::peripheral::DWT;
use cortex_m_rt::entry;
use defmt_rtt as _;
use panic_probe as _;
use stm32f4xx_hal::pac;
use stm32f4xx_hal::prelude::*;
use stm32f4xx_hal::rcc::Config;
use tercet_firmware::story::{self, Memory, Told};

/// The chip's highest clock rate.
const CLOCK_MHZ: u32 = 100;

#[entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let (Some(chip), Some(mut core)) = (pac::Peripherals::take(), cortex_m::Peripherals::take())
    else {
        defmt::panic!("the peripherals are taken");
    };
    // From the chip's own oscillator, so no crystal or solder bridge is needed.
    let mut rcc = chip.RCC.freeze(Config::hsi().sysclk(CLOCK_MHZ.MHz()));
    let pins = chip.GPIOA.split(&mut rcc);
    let Ok(mut console) = chip.USART2.tx(pins.pa2, 115_200.bps(), &mut rcc) else {
        defmt::panic!("the console has no such rate");
    };
    core.DCB.enable_trace();
    core.DWT.enable_cycle_counter();
    let (mut cycles, mut tokens) = (0u64, 0u32);
    let written = story::write(
        MEMORY,
        &mut |work| {
            // A piece takes far less than the 42 seconds after which 32 bits wrap around.
            let before = DWT::cycle_count();
            work();
            cycles = cycles.saturating_add(DWT::cycle_count().wrapping_sub(before).into());
        },
        &mut |told| match told {
            // A console that fails cannot report it.
            Told::Text(bytes) => drop(console.bwrite_all(bytes)),
            Told::Taken(taken) => tokens = taken,
        },
    );
    let each = cycles.checked_div(tokens.into()).unwrap_or(0);
    let _ = match written {
        Ok(digest) => {
            defmt::info!("logits {=u64:016x}", digest);
            writeln!(
                console,
                "\r\nlogits {digest:016x}\r\n{each} cycles a token\r"
            )
        }
        Err(error) => {
            defmt::error!("{}", error);
            writeln!(console, "nothing is written: {}\r", error.text())
        }
    };
    loop {
        // Not asleep: the probe reads the log through a bus that stops during sleep.
        cortex_m::asm::nop();
    }
}
