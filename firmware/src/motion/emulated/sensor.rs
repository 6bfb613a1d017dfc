//! An LSM6DSOX on a bus of its own, which senses a recording.

use embedded_hal::i2c::{Error, ErrorKind, ErrorType, I2c, NoAcknowledgeSource, Operation};

use super::Clock;
use super::registers::{CTRL1_XL, CTRL2_G, OUTX_L_A, OUTX_L_G, OUTZ_H_A, Registers, STATUS};
use crate::motion::{AXES, PERIOD_MS, Recording, Sample};

/// The sensor's address if its pin SDO/SA0 is low.
const ADDRESS: u8 = 0x6A;

/// Nanoseconds that a reset takes.
const RESET: u64 = 50_000;

/// No device answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing;

impl Error for Missing {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoAcknowledge(NoAcknowledgeSource::Address)
    }
}

/// A bus with one LSM6DSOX, which senses a recording: sample k lasts from k to k + 1 periods after both of its parts
/// were started, or after the recording was set.
///
/// Emulated as in the sensor: identity, control registers, resets, output rates and full scales, data-ready bits that
/// a reading clears, bursts. Not emulated: every function that writes samples to another place than the output
/// registers, the temperature, and pages other than the first.
#[derive(Clone, Debug)]
pub struct Sensor<'a> {
    clock: &'a Clock,
    recording: Recording<'a>,
    registers: Registers,
    /// The next register to read or write.
    pointer: u8,
    /// Start of the current reset.
    reset: Option<u64>,
    /// Time when the recording began to play.
    since: Option<u64>,
    /// Numbers of the last readings taken from the gyroscope and from the accelerometer, 0 before the first.
    taken: [u64; 2],
}

impl<'a> Sensor<'a> {
    /// Makes a sensor that was just powered up.
    pub const fn new(clock: &'a Clock, recording: Recording<'a>) -> Self {
        Self {
            clock,
            recording,
            registers: Registers::new(),
            pointer: 0,
            reset: None,
            since: None,
            taken: [0; 2],
        }
    }

    /// Plays another recording from now on.
    pub fn replay(&mut self, recording: Recording<'a>) {
        self.recording = recording;
        self.since = None;
        self.settle();
    }

    /// Interrupts power for a moment: registers have their initial values again.
    pub fn lose_power(&mut self) {
        *self = Self::new(self.clock, self.recording);
    }

    /// Applies the changes that time made since the last access.
    fn settle(&mut self) {
        let now = self.clock.now();
        if self.reset.is_some_and(|began| now - began >= RESET) {
            self.reset = None;
            self.registers.settle();
        }
        if self.period(CTRL1_XL).is_none() || self.period(CTRL2_G).is_none() {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(now);
            self.taken = [0; 2];
        }
    }

    /// Returns the nanoseconds between two readings for a control register: 12.5 Hz, 26 Hz and doublings of that;
    /// `None` while powered down.
    fn period(&self, control: u8) -> Option<u64> {
        match self.registers.get(control) >> 4 {
            0 | 11.. => None,
            1 => Some(80_000_000),
            rate => Some(1_000_000_000 / (26 << (rate - 2))),
        }
    }

    /// Returns the number of the newest reading for a control register, 0 before the first.
    fn reading(&self, control: u8) -> u64 {
        let (Some(since), Some(period)) = (self.since, self.period(control)) else {
            return 0;
        };
        // Nothing new after the recording's end.
        let end = self.recording.len() as u64 * PERIOD;
        (self.clock.now() - since).min(end) / period
    }

    /// Returns the current sample.
    fn sample(&self) -> Sample {
        let Some(since) = self.since else {
            return [0; AXES];
        };
        let age = (self.clock.now() - since).saturating_sub(1);
        let sample = self.recording.get((age / PERIOD) as usize);
        sample.unwrap_or([0; AXES])
    }

    /// Returns an axis of the sample in units of the current full scale; saturates.
    fn output(&self, axis: usize) -> i16 {
        let felt = i32::from(self.sample().get(axis).copied().unwrap_or(0));
        let scale = |control| (self.registers.get(control) >> 2) & 3;
        // The recordings were made at ±2000 °/s and ±8 g.
        let value = match (axis < 3, scale(CTRL1_XL), scale(CTRL2_G)) {
            (true, 0, _) => felt * 4,
            (true, 1, _) => felt / 2,
            (true, 2, _) => felt * 2,
            (false, _, _) if self.registers.get(CTRL2_G) & 2 != 0 => felt * 16,
            (false, _, scale) => felt * (8 >> scale),
            _ => felt,
        };
        value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
    }

    fn read(&mut self, register: u8) -> u8 {
        match register {
            STATUS => {
                let [gyroscope, accelerometer] = self.taken;
                let new = |control, taken| u8::from(self.reading(control) > taken);
                new(CTRL1_XL, accelerometer) | new(CTRL2_G, gyroscope) << 1
            }
            OUTX_L_G..=OUTZ_H_A => {
                let axis = if register < OUTX_L_A {
                    self.taken[0] = self.reading(CTRL2_G);
                    3 + (register - OUTX_L_G) / 2
                } else {
                    self.taken[1] = self.reading(CTRL1_XL);
                    (register - OUTX_L_A) / 2
                };
                let [low, high] = self.output(axis.into()).to_le_bytes();
                if register.is_multiple_of(2) {
                    low
                } else {
                    high
                }
            }
            _ => self.registers.get(register),
        }
    }

    fn write(&mut self, register: u8, value: u8) {
        if self.registers.set(register, value) {
            self.reset = Some(self.clock.now());
        }
        self.settle();
    }
}

/// Nanoseconds between two samples of a recording.
const PERIOD: u64 = PERIOD_MS as u64 * 1_000_000;

impl ErrorType for Sensor<'_> {
    type Error = Missing;
}

impl I2c for Sensor<'_> {
    /// The first byte written in a transaction is the register at which it begins.
    fn transaction(
        &mut self,
        address: u8,
        operations: &mut [Operation<'_>],
    ) -> Result<(), Missing> {
        if address != ADDRESS {
            return Err(Missing);
        }
        self.settle();
        let mut addressed = false;
        for operation in operations {
            match operation {
                Operation::Write(bytes) => {
                    for &byte in *bytes {
                        if addressed {
                            self.write(self.pointer, byte);
                            self.pointer = self.registers.after(self.pointer);
                        } else {
                            (self.pointer, addressed) = (byte, true);
                        }
                    }
                }
                Operation::Read(bytes) => {
                    for byte in bytes.iter_mut() {
                        *byte = self.read(self.pointer);
                        self.pointer = self.registers.after(self.pointer);
                    }
                }
            }
        }
        Ok(())
    }
}
