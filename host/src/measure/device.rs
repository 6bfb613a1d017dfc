//! Engines with memory and a clock of their own.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::case::Case;
use super::contender::Contender;
use super::measured::{Measured, Row};
use super::runner::{Runner, WrongBits};
use super::task::Task;
use super::work::Bound;

/// An engine that does the work of cases on data it brings to a device beforehand, and times it there: a contender of
/// [`super::Runner::run_on_device`].
pub trait Device: fmt::Debug {
    /// What tables call it.
    fn name(&self) -> &'static str;

    /// Does a task once, untimed, and then as often as fits `budget`, at least once.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn run(&mut self, task: &Task<'_>, budget: Duration) -> Result<DeviceRun, DeviceError>;

    /// As [`Device::run`], by other instructions than the usual ones: a contender of another name. `None` where it has no other.
    fn run_otherwise(
        &mut self,
        _task: &Task<'_>,
        _budget: Duration,
    ) -> Option<(&'static str, Result<DeviceRun, DeviceError>)> {
        None
    }

    /// Bytes a second that a copy within the device's memory reads and writes, the best within `budget`, `set` of them in all.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn copy_rate(&mut self, set: usize, budget: Duration) -> Result<f64, DeviceError>;

    /// Bytes a second from the host's memory to the device's and back, as its users bring data there and read results, the best within `budget`
    /// each, of `bytes` at a time.
    ///
    /// # Errors
    /// [`DeviceError`].
    fn transfer_rates(&mut self, bytes: usize, budget: Duration) -> Result<[f64; 2], DeviceError>;
}

/// What a device did.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// [`Bits`](super::Bits) of the first run's results, as its [`Task`] says.
    pub bits: u64,
    /// The seconds that each timed run took on the device, at least one.
    pub seconds: Vec<f64>,
}

/// Why a device did not do a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There is no kernel for it.
    NoKernel,
    /// Its memory has no room for the input, with the reason.
    NoRoom(String),
    /// It failed.
    Failed(String),
}

/// Why a case was not measured to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Stopped {
    /// Somebody gave other bits.
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
        /// What failed.
        reason: String,
    },
    /// A device has no room for the input; the others were measured.
    #[error("{operation} of {size}: left out on {device}: {reason}")]
    NoRoom {
        /// The operation.
        operation: String,
        /// The size of its input.
        size: String,
        /// The device's name.
        device: &'static str,
        /// How much was asked for.
        reason: String,
    },
}

impl Runner {
    /// [`Runner::run`] with a device, whose results come last: it is held against the first contender's bits and time, and its
    /// roofline is a copy within its own memory, measured for the case's working set. `found` gets what was measured before
    /// anything failed.
    ///
    /// # Errors
    /// [`Stopped`]. A case that has no [`Case::task`], or for which the device has no kernel, is no failure; there is no row of
    /// the device then.
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

    /// The row of what a device did under a name, held against the first contender's bits and time; none where it has no kernel.
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
