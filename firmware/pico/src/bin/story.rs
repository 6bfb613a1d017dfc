//! Writes a text with the bundled language model to a console: UART0 (TX GP0), 115,200 baud, 8N1. Then prints the
//! digest of all logits and the microseconds per token. Only the board and a serial adapter are needed.

#![no_std]
#![no_main]

use core::fmt::Write;

use defmt_rtt as _;
use panic_probe as _;
use rp2040_hal::clocks::{Clock as _, init_clocks_and_plls};
use rp2040_hal::fugit::RateExtU32;
use rp2040_hal::gpio::{FunctionUart, Pin, Pins, PullDown, bank0};
use rp2040_hal::uart::{DataBits, StopBits, UartConfig, UartPeripheral};
use rp2040_hal::{Sio, Timer, Watchdog, pac};
use tercet_firmware::story::{self, Memory, Told};
use tercet_pico as _;

/// The board's crystal.
const CRYSTAL_HZ: u32 = 12_000_000;

type Transmit = Pin<bank0::Gpio0, FunctionUart, PullDown>;
type Receive = Pin<bank0::Gpio1, FunctionUart, PullDown>;

#[rp2040_hal::entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let Some(mut chip) = pac::Peripherals::take() else {
        defmt::panic!("the peripherals are taken");
    };
    let mut watchdog = Watchdog::new(chip.WATCHDOG);
    let Ok(clocks) = init_clocks_and_plls(
        CRYSTAL_HZ,
        chip.XOSC,
        chip.CLOCKS,
        chip.PLL_SYS,
        chip.PLL_USB,
        &mut chip.RESETS,
        &mut watchdog,
    ) else {
        defmt::panic!("the clocks do not start");
    };
    let timer = Timer::new(chip.TIMER, &mut chip.RESETS, &clocks);
    let sio = Sio::new(chip.SIO);
    let pins = Pins::new(
        chip.IO_BANK0,
        chip.PADS_BANK0,
        sio.gpio_bank0,
        &mut chip.RESETS,
    );
    let pins: (Transmit, Receive) = (pins.gpio0.into_function(), pins.gpio1.into_function());
    let format = UartConfig::new(115_200.Hz(), DataBits::Eight, None, StopBits::One);
    let console = UartPeripheral::new(chip.UART0, pins, &mut chip.RESETS);
    let Ok(mut console) = console.enable(format, clocks.peripheral_clock.freq()) else {
        defmt::panic!("the console has no such rate");
    };
    let (mut micros, mut tokens) = (0u64, 0u32);
    let written = story::write(
        MEMORY,
        &mut |work| {
            let before = timer.get_counter();
            work();
            let took = timer.get_counter().checked_duration_since(before);
            micros = micros.saturating_add(took.map_or(0, |took| took.to_micros()));
        },
        &mut |told| match told {
            Told::Text(bytes) => console.write_full_blocking(bytes),
            Told::Taken(taken) => tokens = taken,
        },
    );
    let each = micros.checked_div(tokens.into()).unwrap_or(0);
    let _ = match written {
        Ok(digest) => {
            defmt::info!("logits {=u64:016x}", digest);
            writeln!(
                console,
                "\r\nlogits {digest:016x}\r\n{each} microseconds a token\r"
            )
        }
        Err(error) => {
            defmt::error!("{}", error);
            writeln!(console, "nothing is written: {}\r", error.text())
        }
    };
    loop {
        cortex_m::asm::nop();
    }
}
