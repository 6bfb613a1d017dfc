//! An I²C bus that is set up again after an error.
//!
//! If a controller is reset during a transfer, its target waits for clocks and may hold the data line low for ever.
//! Then no start condition is possible, and a HAL that waits for one waits for ever too. [`clear`] gives the target
//! the clocks it waits for (NXP UM10204, "Bus clear"). [`Bus`] calls the board's own code to do so whenever a transfer
//! fails.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{InputPin, OutputPin};
use embedded_hal::i2c::{Error as _, ErrorKind, ErrorType, I2c, Operation};

/// Number of clocks after which a target has sent its byte and seen that it was not acknowledged.
const CLOCKS: u8 = 9;

/// Half a clock period: 100 kHz, which every target can follow.
const HALF_US: u32 = 5;

/// State of the two lines as found, and as left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Lines {
    /// Both were high: no device held them.
    Free,
    /// The data line was low, and is high after this number of clocks.
    Freed {
        /// 1 to 9.
        clocks: u8,
    },
    /// The data line stays low: a short, or a target without power.
    DataLow,
    /// The clock line stays low: a short, no pull-up, or a target that stretches the clock for ever.
    ClockLow,
}

/// Clocks a target that holds the data line until it releases it, then sends a stop condition.
///
/// `clock` and `data` are open drain: setting a pin high releases the line, and reading it returns the line's level.
/// Both are released at the end. Takes at most 120 µs.
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

/// A bus whose controller is set up again after each failed transfer. The error is returned, so the caller decides
/// whether to retry.
///
/// `again` takes the controller apart, clears the lines, reports the result, and sets up the controller again.
#[derive(Debug)]
pub struct Bus<I, F> {
    /// `None` only while `again` runs.
    i2c: Option<I>,
    again: F,
}

impl<I: I2c, F: FnMut(I) -> I> Bus<I, F> {
    /// Makes a bus from a controller that is ready.
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
