//! The motion application on an ST NUCLEO-F411RE.
//!
//! An LSM6DSOX at I²C1 (clock D15 = PB8, data D14 = PB9), LED LD2 (PA5), button B1 (PC13).

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use defmt_rtt as _;
use panic_probe as _;
use stm32f4xx_hal::gpio::{Alternate, OpenDrain, PB8, PB9, PinState};
use stm32f4xx_hal::i2c::{I2c, I2c1};
use stm32f4xx_hal::prelude::*;
use stm32f4xx_hal::rcc::Rcc;
use stm32f4xx_hal::watchdog::IndependentWatchdog;
use stm32f4xx_hal::{pac, timer};
use tercet_firmware::bus::{self, Bus};
use tercet_firmware::motion::{App, Memory};
use tercet_firmware::node;

/// The watchdog resets the board if there is no step for this long, because the HAL waits for the bus without end.
const WATCHDOG_MS: u32 = 5000;

type Clock = PB8<Alternate<4, OpenDrain>>;
type Data = PB9<Alternate<4, OpenDrain>>;

#[entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let (Some(chip), Some(core)) = (pac::Peripherals::take(), cortex_m::Peripherals::take()) else {
        defmt::panic!("the peripherals are taken");
    };

    if chip.RCC.csr().read().wdgrstf().bit_is_set() {
        defmt::error!("the watchdog reset the board: a step did not end");
    }
    chip.RCC.csr().modify(|_, w| w.rmvf().set_bit());
    // 16 MHz from the chip's own oscillator, as after a reset. That is enough, and no crystal or solder bridge is
    // needed.
    let mut rcc = chip.RCC.constrain();

    let mut watchdog = IndependentWatchdog::new(chip.IWDG);
    watchdog.stop_on_debug(&chip.DBGMCU, true);
    watchdog.start(WATCHDOG_MS.millis());

    let a = chip.GPIOA.split(&mut rcc);
    let b = chip.GPIOB.split(&mut rcc);
    let c = chip.GPIOC.split(&mut rcc);
    let led = a.pa5.into_push_pull_output();
    // The board pulls it up; pressed, it is low.
    let button = c.pc13.into_floating_input();

    let mut pause = chip.TIM2.delay_us(&mut rcc);
    let retry = chip.TIM5.delay_us(&mut rcc);
    let delay = core.SYST.delay(&rcc.clocks);
    // Breakouts have pull-ups. With the chip's weak ones an empty bus reads high, and its error reports that no device
    // is there.
    let clock = b.pb8.into_alternate_open_drain().internal_pull_up(true);
    let data = b.pb9.into_alternate_open_drain().internal_pull_up(true);
    let i2c = controller(chip.I2C1, clock, data, &mut pause, &mut rcc);
    let bus = Bus::new(i2c, |i2c: I2c1| {
        let (i2c, (clock, data)) = i2c.release();
        let (Ok(clock), Ok(data)) = (clock.try_into(), data.try_into()) else {
            defmt::panic!("the bus has other pins");
        };
        controller(i2c, clock, data, &mut pause, &mut rcc)
    });

    match App::new(bus, led, delay, MEMORY, node::NETWORK) {
        Ok(app) => node::run(app, retry, || {
            watchdog.feed();
            button.is_low()
        }),
        Err(error) => defmt::panic!("{}", error),
    }
}

/// Clears the lines, then makes the controller, which first resets the peripheral.
fn controller(
    i2c: pac::I2C1,
    clock: Clock,
    data: Data,
    delay: &mut timer::DelayUs<pac::TIM2>,
    rcc: &mut Rcc,
) -> I2c1 {
    let mut clock = clock.into_open_drain_output_in_state(PinState::High);
    let mut data = data.into_open_drain_output_in_state(PinState::High);
    match bus::clear(&mut clock, &mut data, delay) {
        Ok(bus::Lines::Free) => {}
        Ok(lines) => defmt::warn!("I2C: {}", lines),
        Err(never) => match never {},
    }
    let (clock, data) = (
        clock.into_alternate_open_drain(),
        data.into_alternate_open_drain(),
    );
    I2c::new(i2c, (clock, data), 100.kHz(), rcc)
}
