use core::cell::Cell;
use core::convert::Infallible;

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{self, InputPin, OutputPin};
use embedded_hal::i2c::{ErrorKind, ErrorType, I2c, Operation};

use super::{Bus, Lines, clear};

/// Two wires and a target that holds the data line for a number of clocks.
#[derive(Default)]
struct Wires {
    clock: Cell<bool>,
    data: Cell<bool>,
    clock_shorted: bool,
    held: Cell<u32>,
    stops: Cell<u32>,
}

impl Wires {
    fn data_high(&self) -> bool {
        self.data.get() && self.held.get() == 0
    }

    fn clock_high(&self) -> bool {
        self.clock.get() && !self.clock_shorted
    }
}

struct Clock<'a>(&'a Wires);
struct Data<'a>(&'a Wires);
struct NoDelay;

impl DelayNs for NoDelay {
    fn delay_ns(&mut self, _: u32) {}
}

impl digital::ErrorType for Clock<'_> {
    type Error = Infallible;
}

impl digital::ErrorType for Data<'_> {
    type Error = Infallible;
}

impl OutputPin for Clock<'_> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        // A target advances at the falling edge.
        if self.0.clock_high() {
            self.0.held.set(self.0.held.get().saturating_sub(1));
        }
        self.0.clock.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.clock.set(true);
        Ok(())
    }
}

impl InputPin for Clock<'_> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.clock_high())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.clock_high())
    }
}

impl OutputPin for Data<'_> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        assert!(
            !self.0.clock_high(),
            "the data line falls while the clock is high: a start"
        );
        self.0.data.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        let was = self.0.data_high();
        self.0.data.set(true);
        if !was && self.0.data_high() && self.0.clock_high() {
            self.0.stops.set(self.0.stops.get() + 1);
        }
        Ok(())
    }
}

impl InputPin for Data<'_> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.data_high())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.data_high())
    }
}

fn cleared(wires: &Wires) -> Lines {
    // A board releases both before it reads them.
    wires.clock.set(true);
    wires.data.set(true);
    let lines = clear(&mut Clock(wires), &mut Data(wires), &mut NoDelay);
    assert!(wires.clock.get() && wires.data.get(), "both are let go");
    lines.unwrap_or_else(|never| match never {})
}

fn held_for(clocks: u32) -> Wires {
    Wires {
        held: Cell::new(clocks),
        ..Wires::default()
    }
}

#[test]
fn free_lines_are_left_alone() {
    let wires = Wires::default();
    assert_eq!(cleared(&wires), Lines::Free);
    assert_eq!(wires.stops.get(), 0);
}

#[test]
fn a_target_amid_a_byte_gets_its_clocks_and_one_stop() {
    for clocks in 1..=9 {
        let wires = held_for(clocks.into());
        assert_eq!(cleared(&wires), Lines::Freed { clocks });
        assert_eq!(wires.stops.get(), 1, "{clocks}");
        assert!(wires.data_high() && wires.clock_high());
    }
}

#[test]
fn a_short_is_named() {
    assert_eq!(cleared(&held_for(1000)), Lines::DataLow);
    let wires = Wires {
        clock_shorted: true,
        ..held_for(3)
    };
    assert_eq!(cleared(&wires), Lines::ClockLow);
}

/// A controller that fails until it was set up again this many times.
struct Failing(u32);

impl ErrorType for Failing {
    type Error = ErrorKind;
}

impl I2c for Failing {
    fn transaction(&mut self, _: u8, _: &mut [Operation<'_>]) -> Result<(), ErrorKind> {
        if self.0 > 0 {
            return Err(ErrorKind::ArbitrationLoss);
        }
        Ok(())
    }
}

#[test]
fn the_controller_is_made_again_after_each_error_and_only_then() {
    let mut made = 0;
    let mut bus = Bus::new(Failing(2), |Failing(left)| {
        made += 1;
        Failing(left - 1)
    });
    assert_eq!(bus.write(0x6A, &[0x0F]), Err(ErrorKind::ArbitrationLoss));
    assert_eq!(bus.read(0x6A, &mut [0]), Err(ErrorKind::ArbitrationLoss));
    for _ in 0..3 {
        assert_eq!(bus.write_read(0x6A, &[0x0F], &mut [0]), Ok(()));
    }
    assert_eq!(made, 2);
}
