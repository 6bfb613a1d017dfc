//! Engines with their own memory and clock.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::case::Case;
use super::contender::Contender;
use super::measured::{Measured, Row};
use super::runner::{Runner, WrongBits};
use super::task::Task;
use super::work::Bound;

/// An engine that runs cases on data that it copies to a device beforehand, and times them there: a contender of
/// [`super::Runner::run_on_device`].
pub trait Device: fmt::Debug {
    /// Returns its name in tables.
    fn name(&self) -> &'static str;

    /// Runs a task once, untimed, and then as often as fits `budget`, at least once.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn run(&mut self, task: &Task<'_>, budget: Duration) -> Result<DeviceRun, DeviceError>;

    /// As [`Device::run`], with other instructions than the usual ones: a contender with another name. `None` if it has
    /// no others.
    fn run_otherwise(
        &mut self,
        _task: &Task<'_>,
        _budget: Duration,
    ) -> Option<(&'static str, Result<DeviceRun, DeviceError>)> {
        None
    }

    /// Returns the bytes per second that a copy within the device's memory reads and writes, the best within `budget`;
    /// `set` bytes in total.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn copy_rate(&mut self, set: usize, budget: Duration) -> Result<f64, DeviceError>;

    /// Returns the bytes per second from the host's memory to the device's and back, in the way that users copy data
    /// there and read results; the best within `budget` for each, with `bytes` at a time.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn transfer_rates(&mut self, bytes: usize, budget: Duration) -> Result<[f64; 2], DeviceError>;
}

/// The result of a device.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// [`Bits`](super::Bits) of the first run's results, as its [`Task`] defines them.
    pub bits: u64,
    /// Seconds of each timed run on the device, at least one.
    pub seconds: Vec<f64>,
}

/// Why a device did not run a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There is no kernel for it.
    NoKernel,
    /// Its memory has no room for the input, with the reason.
    NoRoom(String),
    /// It failed, with the reason.
    Failed(String),
}

/// Why a case was not measured completely.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Stopped {
    /// A contender gave other bits.
    #[error(transparent)]
    Bits(#[from] WrongBits),
    /// A device failed.
    #[error("{operation} of {size}: {device}: {reason}")]
    Device {
        /// The operation.
        operation: String,
        /// The size of its input.
        size: String,
        /// The device's name.
        device: &'static str,
        /// The failure.
        reason: String,
    },
    /// A device has no room for the input; the other contenders were measured.
    #[error("{operation} of {size}: left out on {device}: {reason}")]
    NoRoom {
        /// The operation.
        operation: String,
        /// The size of its input.
        size: String,
        /// The device's name.
        device: &'static str,
        /// The requested amount.
        reason: String,
    },
}

impl Runner {
    /// Does [`Runner::run`] with a device, whose results come last. It is compared with the first contender's bits and
    /// time, and its roofline is a copy within its own memory, measured for the case's working set. `found` receives
    /// the results from before a failure.
    ///
    /// # Errors
    /// [`Stopped`]. A case without [`Case::task`], or without a kernel on the device, is no failure; there is then no
    /// row for the device.
    pub fn run_on_device(
        &mut self,
        case: &Case,
        contenders: &[Contender],
        device: &mut dyn Device,
        found: &mut Vec<Measured>,
    ) -> Result<(), Stopped> {
        let (measured, bits) = self.compete(case, contenders, &mut [])?;
        let first = measured.first().cloned();
        found.extend(measured);
        let (Some(task), Some(first)) = (case.task(), first) else {
            return Ok(());
        };
        let budget = self.settings.budget;
        let run = device.run(&task, budget);
        let name = device.name();
        let usual = self.judge(case, (&mut *device, name), run, (bits, &first))?;
        let done = usual.is_some();
        found.extend(usual);
        if let Some((name, run)) = device.run_otherwise(&task, budget).filter(|_| done) {
            found.extend(self.judge(case, (device, name), run, (bits, &first))?);
        }
        Ok(())
    }

    /// Returns the row of a device's run under a name, compared with the first contender's bits and time; `None` if it
    /// has no kernel.
    fn judge(
        &self,
        case: &Case,
        (device, name): (&mut dyn Device, &'static str),
        run: Result<DeviceRun, DeviceError>,
        (bits, first): (Option<u64>, &Measured),
    ) -> Result<Option<Measured>, Stopped> {
        let (operation, size) = (case.operation.clone(), case.size.clone());
        let stopped = |error| match error {
            DeviceError::NoRoom(reason) => Err(Stopped::NoRoom {
                operation: operation.clone(),
                size: size.clone(),
                device: name,
                reason,
            }),
            DeviceError::Failed(reason) => Err(Stopped::Device {
                operation: operation.clone(),
                size: size.clone(),
                device: name,
                reason,
            }),
            DeviceError::NoKernel => Ok(None),
        };
        let run = match run {
            Ok(run) if run.seconds.is_empty() => {
                return stopped(DeviceError::Failed("it gave no times".to_owned()));
            }
            Ok(run) => run,
            Err(error) => return stopped(error),
        };
        if Some(run.bits) != bits {
            return Err(Stopped::Bits(WrongBits {
                operation,
                size,
                by: name.to_owned(),
                first: first.contender(),
            }));
        }
        let rate = match device.copy_rate(case.work.set, self.settings.ceiling) {
            Ok(rate) => rate,
            Err(error) => return stopped(error),
        };
        let mut samples = run.seconds;
        let steps = f64::from(case.work.steps);
        samples.iter_mut().for_each(|sample| *sample /= steps);
        samples.sort_by(f64::total_cmp);
        let ceiling = (case.work.bytes() as f64 / rate, Bound::Memory);
        let who = Row {
            engine: name,
            backend: name,
            threads: 0,
            device: true,
        };
        Ok(Some(Measured::new(
            case,
            who,
            &samples,
            None,
            ceiling,
            first.seconds,
        )))
    }
}
