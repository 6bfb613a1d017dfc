//! The motion application on a Raspberry Pi Pico.
//!
//! An LSM6DSOX at I²C0 (data GP4, clock GP5), LED (GP25), and optionally a button from GP15 to ground.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embedded_hal::digital::InputPin;
use panic_probe as _;
use rp2040_hal::clocks::{Clock as _, init_clocks_and_plls};
use rp2040_hal::fugit::{ExtU32, HertzU32, RateExtU32};
use rp2040_hal::gpio::bank0::{Gpio4, Gpio5};
use rp2040_hal::gpio::{FunctionI2C, InOutPin, Pin, Pins, PullUp};
use rp2040_hal::i2c::Controller;
use rp2040_hal::{I2C, Sio, Timer, Watchdog, pac};
use tercet_firmware::bus::{self, Bus};
use tercet_firmware::motion::{App, Memory};
use tercet_firmware::node;
use tercet_pico as _;

/// The board's crystal.
const CRYSTAL_HZ: u32 = 12_000_000;

/// The watchdog resets the board if there is no step for this long, because the HAL waits for the bus without end.
const WATCHDOG_MS: u32 = 5000;

type Data = Pin<Gpio4, FunctionI2C, PullUp>;
type Clock = Pin<Gpio5, FunctionI2C, PullUp>;
type I2c0 = I2C<pac::I2C0, (Data, Clock), Controller>;

#[rp2040_hal::entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let Some(mut chip) = pac::Peripherals::take() else {
        defmt::panic!("the peripherals are taken");
    };

    if chip.WATCHDOG.reason().read().timer().bit_is_set() {
        defmt::error!("the watchdog reset the board: a step did not end");
    }
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
    // It stops while a probe has halted the processor.
    watchdog.start(WATCHDOG_MS.millis());
    let timer = Timer::new(chip.TIMER, &mut chip.RESETS, &clocks);

    let sio = Sio::new(chip.SIO);
    let pins = Pins::new(
        chip.IO_BANK0,
        chip.PADS_BANK0,
        sio.gpio_bank0,
        &mut chip.RESETS,
    );
    let led = pins.gpio25.into_push_pull_output();
    // The button BOOTSEL shares a line with the flash that the program runs from, so it is not read here.
    let mut button = pins.gpio15.into_pull_up_input();

    // Breakouts have pull-ups. With the chip's weak ones an empty bus reads high, and its error reports that no device
    // is there.
    let (data, clock) = (pins.gpio4.reconfigure(), pins.gpio5.reconfigure());
    let system = clocks.system_clock.freq();
    let mut resets = chip.RESETS;
    let i2c = controller(chip.I2C0, data, clock, timer, &mut resets, system);
    let bus = Bus::new(i2c, |i2c: I2c0| {
        let (i2c, (data, clock)) = i2c.free(&mut resets);
        controller(i2c, data, clock, timer, &mut resets, system)
    });

    match App::new(bus, led, timer, MEMORY, node::NETWORK) {
        Ok(app) => node::run(app, timer, || {
            watchdog.feed();
            matches!(button.is_low(), Ok(true))
        }),
        Err(error) => defmt::panic!("{}", error),
    }
}

/// Clears the lines, then makes the controller, which first resets the peripheral.
fn controller(
    i2c: pac::I2C0,
    data: Data,
    clock: Clock,
    mut delay: Timer,
    resets: &mut pac::RESETS,
    system: HertzU32,
) -> I2c0 {
    let (mut data, mut clock) = (InOutPin::new(data), InOutPin::new(clock));
    match bus::clear(&mut clock, &mut data, &mut delay) {
        Ok(bus::Lines::Free) => {}
        Ok(lines) => defmt::warn!("I2C: {}", lines),
        // A pin of this chip does not fail.
        Err(_) => defmt::warn!("I2C: the pins fail"),
    }
    let (data, clock) = (data.release(), clock.release());
    I2C::new_controller(i2c, data, clock, 100.kHz(), resets, system)
}
