//! An I²C bus that is made again after an error.
//!
//! A controller that is reset amid a transfer leaves its target waiting for clocks, and the target may hold the data line low for
//! ever: then no start condition is possible, and a HAL that waits for one waits for ever too. [`clear`] gives the target the clocks
//! it waits for (NXP UM10204, "Bus clear"); [`Bus`] does so, by the board's own code, whenever a transfer fails.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin};
use embedded_hal::i2c::{Error as _, ErrorKind, ErrorType, I2c, Operation};

/// Clocks after which a target has sent its byte and seen that nobody acknowledges it.
const CLOCKS: u8 = 9;

/// Half a clock: 100 kHz, which every target can follow.
const HALF_US: u32 = 5;

/// How two lines were found, and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Lines {
    /// Both were high: nobody held them.
    Free,
    /// The data line was low, and is high after so many clocks.
    Freed {
        /// 1 to 9.
        clocks: u8,
    },
    /// The data line stays low: a short, or a target without power.
    DataLow,
    /// The clock line stays low: a short, no pull-up, or a target that stretches for ever.
    ClockLow,
}

/// Clocks a target free that holds the data line, then gives a stop condition.
///
/// `clock` and `data` are open drain: high lets the line go, and reading them gives the line's level. Both are let go at
/// the end. Takes at most 120 µs.
///
/// # Errors
/// Those of the pins.
pub fn clear<C, S, E>(clock: &mut C, data: &mut S, delay: &mut impl DelayNs) -> Result<Lines, E>
where
    C: InputPin<Error = E> + OutputPin<Error = E>,
    S: InputPin<Error = E> + OutputPin<Error = E>,
{
    data.set_high()?;
    clock.set_high()?;
    delay.delay_us(HALF_US);
    if clock.is_low()? {
        return Ok(Lines::ClockLow);
    }
    if data.is_high()? {
        return Ok(Lines::Free);
    }
    for clocks in 1..=CLOCKS {
        clock.set_low()?;
        delay.delay_us(HALF_US);
        clock.set_high()?;
        delay.delay_us(HALF_US);
        if data.is_high()? {
            // Stop: the data line rises while the clock is high.
            clock.set_low()?;
            data.set_low()?;
            delay.delay_us(HALF_US);
            clock.set_high()?;
            delay.delay_us(HALF_US);
            data.set_high()?;
            delay.delay_us(HALF_US);
            return Ok(Lines::Freed { clocks });
        }
    }
    Ok(Lines::DataLow)
}

/// A bus whose controller is made anew after each transfer that failed. The error is passed on: who asked decides whether to ask again.
///
/// `again` takes the controller apart, clears the lines, says so, and makes the controller.
#[derive(Debug)]
pub struct Bus<I, F> {
    /// `None` only while `again` runs.
    i2c: Option<I>,
    again: F,
}

impl<I: I2c, F: FnMut(I) -> I> Bus<I, F> {
    /// A bus over a controller that is ready.
    pub const fn new(i2c: I, again: F) -> Self {
        Self {
            i2c: Some(i2c),
            again,
        }
    }
}

impl<I: I2c, F> ErrorType for Bus<I, F> {
    type Error = ErrorKind;
}

impl<I: I2c, F: FnMut(I) -> I> I2c for Bus<I, F> {
    fn transaction(
        &mut self,
        address: u8,
        operations: &mut [Operation<'_>],
    ) -> Result<(), ErrorKind> {
        let mut i2c = self.i2c.take().ok_or(ErrorKind::Other)?;
        let done = i2c.transaction(address, operations);
        self.i2c = Some(if done.is_err() {
            (self.again)(i2c)
        } else {
            i2c
        });
        done.map_err(|error| error.kind())
    }
}

#[cfg(test)]
mod tests;
