//! What can fail on a device.

use std::ffi::{CStr, c_uint};
use std::fmt;

use tercet_core::engine::Refused;

use super::driver;

/// Why something was not done on a device. Each is told in one line.
///
/// After [`CudaError::OutOfMemory`] the engine is as it was: ask for less, or go to the CPU. After [`CudaError::Lost`] every call
/// of every engine of that device in this process fails so; only a new process gets the device back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No library of the driver's name could be opened.
    #[error("no CUDA driver is installed (libcuda.so, on Windows nvcuda.dll)")]
    NoDriver,
    /// What has the driver's name is not a driver that works.
    #[error("the CUDA driver does not work: {reason}")]
    BrokenDriver {
        /// What is wrong with it.
        reason: String,
    },
    /// The driver cannot load the kernels that are shipped.
    #[error("the CUDA driver is of version {found}; {needed} or newer is needed")]
    OldDriver {
        /// Its version.
        found: Version,
        /// The oldest that will do.
        needed: Version,
    },
    /// The driver works and has no device, or none of that number.
    #[error("no CUDA device {ordinal}: there are {count}")]
    NoDevice {
        /// The number asked for, from 0.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The device lacks what kernels need.
    #[error("{name} cannot be used: {reason}")]
    OldDevice {
        /// Its name.
        name: String,
        /// What it lacks.
        reason: &'static str,
    },
    /// The device's memory, or the part of it that the engine may use, has no room.
    #[error("out of device memory: {asked} bytes asked for, {free} free")]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that were free, as far as the driver could tell; not always in one piece.
        free: usize,
    },
    /// A kernel did not start. The device goes on.
    #[error("kernel {kernel} did not start: {status}")]
    Launch {
        /// Its name.
        kernel: &'static str,
        /// The driver's reason.
        status: Status,
    },
    /// What is shipped has no such kernel for this device.
    #[error("no kernel {kernel} for this device")]
    NoKernel {
        /// Its name.
        kernel: &'static str,
    },
    /// A kernel was called with other arguments than it has: a mistake of this crate.
    #[error("kernel {kernel} does not take such an argument {index}")]
    Argument {
        /// Its name.
        kernel: &'static str,
        /// Which one, from 0.
        index: usize,
    },
    /// A buffer of another length, or of another engine.
    #[error("a buffer of {found} elements where {expected} are needed")]
    Length {
        /// The length that was needed.
        expected: usize,
        /// The length given; that of a buffer of another engine counts as 0.
        found: usize,
    },
    /// The device stopped in the middle of its work, whose results are lost.
    #[error("the CUDA device was lost: {status}")]
    Lost {
        /// What stopped it.
        status: Status,
    },
    /// What cannot be a part of launches that are recorded ([`super::Cuda::capture`]), or would not outlive them.
    #[error("no buffer can be {refused} while launches are recorded")]
    Recording {
        /// What was asked for.
        refused: &'static str,
    },
    /// Any other failure of the driver.
    #[error("{call} failed: {status}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        status: Status,
    },
    /// NCCL, which was asked for, is missing or failed. What it had under way was ended; the devices go on.
    #[error("NCCL does not work: {reason}")]
    Nccl {
        /// What is wrong with it, or its function and answer.
        reason: String,
    },
    /// What failed on one of several devices.
    #[error("on CUDA device {ordinal}: {error}")]
    OnDevice {
        /// The device's number.
        ordinal: usize,
        /// What failed there.
        error: Box<Self>,
    },
    /// What every engine refuses, the caller's mistake.
    #[error(transparent)]
    Refused(Refused),
}

tercet_core::from_refusals!(CudaError);

impl CudaError {
    /// What failed, wherever it did: [`CudaError::OnDevice`] without the device.
    pub fn cause(&self) -> &Self {
        match self {
            Self::OnDevice { error, .. } => error,
            _ => self,
        }
    }

    /// The error with the device that it is about; what core refuses is about none.
    pub(super) fn on(self, ordinal: usize) -> Self {
        if matches!(self, Self::OnDevice { .. }) || !self.is_of_the_device() {
            return self;
        }
        let error = Box::new(self);
        Self::OnDevice { ordinal, error }
    }

    /// Whether less of the same, or the same later, may succeed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.cause(), Self::OutOfMemory { .. })
    }

    /// Whether it is about the device and not about what was asked: another engine would do it.
    pub const fn is_of_the_device(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// What the driver answered: a `CUresult`. Shown by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(c_uint);

impl Status {
    pub(super) const OUT_OF_MEMORY: Self = Self(2);
    pub(super) const STUB_LIBRARY: Self = Self(34);
    pub(super) const NO_DEVICE: Self = Self(100);
    pub(super) const NOT_READY: Self = Self(600);

    /// `Ok` where a driver's function succeeded.
    pub(super) const fn check(code: c_uint) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// The status of a number that is not 0.
    pub(super) const fn from_code(code: c_uint) -> Self {
        Self(code)
    }

    /// The number.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// Whether nothing works on the device from now on, as NVIDIA's documentation says of these errors: those after which
    /// "the process must be terminated and relaunched", and a device that is gone.
    pub(super) const fn loses_the_device(self) -> bool {
        matches!(
            self.0,
            214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match driver::name(*self) {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "CUDA error {}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A version of the driver, as CUDA counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 12 of 12.4.
    pub major: u32,
    /// 4 of 12.4.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A name that the driver gave.
pub(super) fn text(name: &CStr) -> String {
    name.to_string_lossy().trim().to_owned()
}
