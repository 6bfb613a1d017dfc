//! A bus, a pin and a sensor that fail.

use std::vec;
use std::vec::Vec;

use embedded_hal::digital::{self, OutputPin};
use embedded_hal::i2c::{self, I2c, Operation};

use super::{NETWORK, recording, reports, wear};
use crate::motion::emulated::{Clock, Delay, Missing, Sensor};
use crate::motion::{App, Error, Memory, Report};

/// A bus on which some transactions fail, and their count.
struct Flaky<'a, F> {
    sensor: Sensor<'a>,
    number: usize,
    fails: F,
}

#[derive(Debug)]
struct Noise;

impl i2c::Error for Noise {
    fn kind(&self) -> i2c::ErrorKind {
        i2c::ErrorKind::ArbitrationLoss
    }
}

impl<F> i2c::ErrorType for Flaky<'_, F> {
    type Error = Noise;
}

impl<F: FnMut(usize) -> bool> I2c for Flaky<'_, F> {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), Noise> {
        self.number += 1;
        if (self.fails)(self.number - 1) {
            return Err(Noise);
        }
        let done: Result<(), Missing> = self.sensor.transaction(address, operations);
        done.map_err(|Missing| Noise)
    }
}

/// A pin of which some writes fail, and its last state.
struct Stuck<F> {
    high: bool,
    number: usize,
    fails: F,
}

#[derive(Debug)]
struct Short;

impl digital::Error for Short {
    fn kind(&self) -> digital::ErrorKind {
        digital::ErrorKind::Other
    }
}

impl<F> digital::ErrorType for Stuck<F> {
    type Error = Short;
}

impl<F: FnMut(usize) -> bool> Stuck<F> {
    fn set(&mut self, high: bool) -> Result<(), Short> {
        self.number += 1;
        if (self.fails)(self.number - 1) {
            return Err(Short);
        }
        self.high = high;
        Ok(())
    }
}

impl<F: FnMut(usize) -> bool> OutputPin for Stuck<F> {
    fn set_low(&mut self) -> Result<(), Short> {
        self.set(false)
    }

    fn set_high(&mut self) -> Result<(), Short> {
        self.set(true)
    }
}

/// Returns the reports of a recording and the errors, with a bus and a pin that fail now and then.
fn run(
    bus: impl FnMut(usize) -> bool,
    pin: impl FnMut(usize) -> bool,
) -> (Vec<Report>, Vec<Error>) {
    let (clock, mut memory) = (Clock::new(), Memory::new());
    let flaky = Flaky {
        sensor: Sensor::new(&clock, recording(10)),
        number: 0,
        fails: bus,
    };
    let stuck = Stuck {
        high: false,
        number: 0,
        fails: pin,
    };
    let mut app = App::new(flaky, stuck, Delay::new(&clock), &mut memory, NETWORK).unwrap();
    let (mut reports, mut errors) = (vec![], vec![]);
    for _ in 0..2000 {
        match app.step() {
            Ok(report) => reports.extend(report),
            Err(error) => errors.push(error),
        }
        // The 100th sample ends the last one.
        if reports.len() == 7 {
            return (reports, errors);
        }
    }
    panic!("the recording does not end");
}

const BUS: Error = Error::Bus {
    kind: i2c::ErrorKind::ArbitrationLoss,
};

#[test]
fn no_transaction_is_one_whose_failure_loses_anything() {
    let whole = wear(10, |app, _| reports(app, 100));
    assert_eq!(whole.len(), 7);
    // Setting up takes fewer than 40 transactions, and a sample takes four.
    for failing in 0..440 {
        let (reports, errors) = run(|number| number == failing, |_| false);
        assert_eq!(reports, whole, "{failing}");
        // The driver loses the cause when it reads the identity, the second transaction.
        let kind = match failing {
            1 => i2c::ErrorKind::Other,
            _ => i2c::ErrorKind::ArbitrationLoss,
        };
        let expected = Error::Bus { kind };
        assert!(
            errors.is_empty() && failing > 400 || errors == [expected],
            "{failing}"
        );
    }
}

#[test]
fn failures_in_a_row_lose_nothing_either() {
    let whole = wear(10, |app, _| reports(app, 100));
    // Every third transaction after the sensor is set up.
    let (reports, errors) = run(|number| number > 50 && number % 3 == 0, |_| false);
    assert_eq!(reports, whole);
    assert!(errors.len() > 100 && errors.iter().all(|&error| error == BUS));
}

#[test]
fn a_report_waits_for_its_pin() {
    let whole = wear(10, |app, _| reports(app, 100));
    let (reports, errors) = run(|_| false, |number| number % 2 == 0);
    assert_eq!(reports, whole);
    let kind = digital::ErrorKind::Other;
    assert_eq!(errors, [Error::Pin { kind }; 7]);
}

#[test]
fn a_missing_sensor_and_another_one_are_told_apart() {
    let (_, errors) = run(|number| number < 3, |_| false);
    assert_eq!(errors, [BUS; 3]);
    let (clock, mut memory) = (Clock::new(), Memory::new());
    let stranger = Stranger;
    let pin = crate::motion::emulated::Pin::new();
    let mut app = App::new(stranger, pin, Delay::new(&clock), &mut memory, NETWORK).unwrap();
    assert_eq!(app.step(), Err(Error::Identity { found: 0x6B }));
}

/// A device whose every register is 0x6B.
struct Stranger;

impl i2c::ErrorType for Stranger {
    type Error = Noise;
}

impl I2c for Stranger {
    fn transaction(&mut self, _: u8, operations: &mut [Operation<'_>]) -> Result<(), Noise> {
        for operation in operations {
            if let Operation::Read(bytes) = operation {
                bytes.fill(0x6B);
            }
        }
        Ok(())
    }
}

#[test]
fn a_sensor_that_lost_power_is_set_up_again() {
    wear(0, |app, _| {
        reports(app, 100);
        app.i2c().replay(recording(10));
        app.i2c().lose_power();
        assert_eq!(app.step(), Err(Error::NotReady));
        let after = reports(app, 40);
        // A complete new window; the clusters are kept.
        assert_eq!((after.len(), after[0].number), (1, 7));
        // The eighth seed.
        assert_eq!(after[0].cluster, 7);
    });
}
