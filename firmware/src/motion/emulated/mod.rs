//! A board's parts without a board: a clock that only waiting moves, a delay, and a sensor that answers like an
//! LSM6DSOX.
//!
//! ```
//! use tercet_firmware::motion::emulated::{Clock, Delay, Pin, Sensor};
//! use tercet_firmware::motion::{App, Memory, Recording};
//!
//! # fn run(recording: Recording<'_>, network: &[u8]) -> Result<(), tercet_firmware::motion::Error> {
//! let (clock, mut memory) = (Clock::new(), Memory::new());
//! let sensor = Sensor::new(&clock, recording);
//! let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), &mut memory, network)?;
//! while let Ok(report) = app.step() {
//!     // The recording's end is a sensor that has nothing new.
//!     let _ = report;
//! }
//! # Ok(())
//! # }
//! ```

mod registers;
mod sensor;

use core::cell::Cell;
use core::convert::Infallible;

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{ErrorType, OutputPin};

pub use sensor::{Missing, Sensor};

/// Time, which passes only while a [`Delay`] waits.
#[derive(Debug, Default)]
pub struct Clock {
    nanoseconds: Cell<u64>,
}

impl Clock {
    /// Starts at 0.
    pub const fn new() -> Self {
        Self {
            nanoseconds: Cell::new(0),
        }
    }

    /// Returns the nanoseconds since the start.
    pub const fn now(&self) -> u64 {
        self.nanoseconds.get()
    }
}

/// A delay that moves a clock.
#[derive(Clone, Copy, Debug)]
pub struct Delay<'a> {
    clock: &'a Clock,
}

impl<'a> Delay<'a> {
    /// Makes a delay that moves this clock.
    pub const fn new(clock: &'a Clock) -> Self {
        Self { clock }
    }
}

impl DelayNs for Delay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        let time = &self.clock.nanoseconds;
        time.set(time.get().saturating_add(ns.into()));
    }
}

/// A pin that is not connected and keeps its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pin {
    high: bool,
}

impl Pin {
    /// Makes a low pin.
    pub const fn new() -> Self {
        Self { high: false }
    }

    /// Returns true if the pin is high.
    pub const fn is_high(&self) -> bool {
        self.high
    }
}

impl ErrorType for Pin {
    type Error = Infallible;
}

impl OutputPin for Pin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.high = false;
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.high = true;
        Ok(())
    }
}
