//! The motion sensor: an ST LSM6DSOX, used through its driver crate.

use embedded_hal::delay::DelayNs;
use embedded_hal::i2c::{ErrorKind, I2c};
use lsm6dsox::accelerometer::{Accelerometer as _, RawAccelerometer as _};
use lsm6dsox::{
    AccelerometerScale, DataRate, GyroscopeScale, Lsm6dsox, SlaveAddress, accelerometer,
};

use super::Error;

/// Values per sample.
pub const AXES: usize = 6;

/// Acceleration along x, y, z in 0.244 mg (±8 g), then the angular rate about x, y, z in 0.07 °/s (±2000 °/s): the
/// content of the sensor's registers.
pub type Sample = [i16; AXES];

/// Milliseconds between two samples: the recordings were made at 10 Hz.
pub const PERIOD_MS: u32 = 100;

/// Maximum number of attempts to read a sample that is due, a millisecond apart. The sensor makes one every 9.6 ms.
const TRIES: u32 = 20;

/// Makes the driver with a borrowed bus and delay: it owns both, but they are needed outside of it too. All its other
/// state is in the sensor's registers.
fn driver<I: I2c, D: DelayNs>(i2c: I, delay: D) -> Lsm6dsox<I, D> {
    Lsm6dsox::new(i2c, SlaveAddress::Low, delay)
}

/// Resets the sensor and starts both of its parts. Takes at least 110 ms.
///
/// It samples at 104 Hz, and one of these samples is read every [`PERIOD_MS`]. So a reading is at most a tenth of a
/// period old.
pub(super) fn start<I: I2c, D: DelayNs>(i2c: &mut I, delay: &mut D) -> Result<(), Error> {
    let mut driver = driver(i2c, delay);
    // A harmless read, since the next call does not report how the bus failed.
    if let Err(error) = driver.sample_rate()
        && let Some(cause) = error.cause()
    {
        return Err(failed(cause));
    }
    driver.check_id().map_err(|found| match found {
        Some(found) => Error::Identity { found },
        None => Error::Bus {
            kind: ErrorKind::Other,
        },
    })?;
    let mut start = || {
        driver.setup()?;
        driver.set_accel_scale(AccelerometerScale::Accel8g)?;
        driver.set_gyro_scale(GyroscopeScale::Dps2000)?;
        driver.set_accel_sample_rate(DataRate::Freq104Hz)?;
        driver.set_gyro_sample_rate(DataRate::Freq104Hz)
    };
    start().map_err(|error| failed(&error))
}

/// Reads a sample in two halves as soon as there is a new one. If the angular rate could not be read, `half` keeps the
/// acceleration, so that the next call continues from there.
pub(super) fn read<I: I2c, D: DelayNs>(
    i2c: &mut I,
    delay: &mut D,
    half: &mut Option<[i16; 3]>,
) -> Result<Sample, Error> {
    let mut tries = 0;
    loop {
        match once(i2c, delay, half) {
            Err(Error::NotReady) if tries < TRIES => {
                tries += 1;
                delay.delay_ms(1);
            }
            read => return read,
        }
    }
}

fn once<I: I2c, D: DelayNs>(
    i2c: &mut I,
    delay: &mut D,
    half: &mut Option<[i16; 3]>,
) -> Result<Sample, Error> {
    let mut driver = driver(i2c, delay);
    let [x, y, z] = match *half {
        Some(acceleration) => acceleration,
        None => {
            let read = driver.accel_raw().map_err(|error| reading(&error))?;
            *half.insert([read.x, read.y, read.z])
        }
    };
    let rate = driver.angular_rate_raw().map_err(|error| failed(&error))?;
    *half = None;
    Ok([x, y, z, rate.x, rate.y, rate.z])
}

fn reading<B: embedded_hal::i2c::Error>(error: &accelerometer::Error<lsm6dsox::Error<B>>) -> Error {
    // The driver gives a cause whenever it reads raw values.
    error.cause().map_or(Error::NotReady, failed)
}

fn failed<B: embedded_hal::i2c::Error>(error: &lsm6dsox::Error<B>) -> Error {
    match error {
        lsm6dsox::Error::I2cWriteError(error) | lsm6dsox::Error::I2cReadError(error) => {
            Error::bus(error)
        }
        lsm6dsox::Error::ResetFailed => Error::Reset,
        // The other errors are of functions that are not called.
        _ => Error::NotReady,
    }
}
