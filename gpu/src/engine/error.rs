//! Errors of a device.

use std::ffi::{CStr, c_uint};
use std::fmt;

use tercet_core::engine::Refused;

use super::driver;

/// Why something was not done on a device. Each error is described in one line.
///
/// After [`CudaError::OutOfMemory`] the engine is unchanged: use less memory, or the CPU. After [`CudaError::Lost`]
/// every call of every engine of that device in this process fails in this way; only a new process can use the device
/// again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No library with the driver's name could be opened.
    #[error("no CUDA driver is installed (libcuda.so, on Windows nvcuda.dll)")]
    NoDriver,
    /// The library with the driver's name is not a working driver.
    #[error("the CUDA driver does not work: {reason}")]
    BrokenDriver {
        /// The fault.
        reason: String,
    },
    /// The driver cannot load the shipped kernels.
    #[error("the CUDA driver has version {found}; version {needed} or newer is needed")]
    OldDriver {
        /// Its version.
        found: Version,
        /// The oldest usable version.
        needed: Version,
    },
    /// The driver works, but has no device, or none with that number.
    #[error("no CUDA device {ordinal}: this machine has {count}")]
    NoDevice {
        /// The requested number, from 0.
        ordinal: usize,
        /// Number of devices.
        count: usize,
    },
    /// The device lacks a feature that kernels need.
    #[error("{name} cannot be used: {reason}")]
    OldDevice {
        /// Its name.
        name: String,
        /// The missing feature.
        reason: &'static str,
    },
    /// There is no room in the device's memory, or in the part of it that the engine may use.
    #[error("out of device memory: {asked} bytes requested, {free} free")]
    OutOfMemory {
        /// Bytes requested.
        asked: usize,
        /// Bytes that were free, as far as the driver could tell; not always in one piece.
        free: usize,
    },
    /// A kernel did not start. The device still works.
    #[error("kernel {kernel} did not start: {status}")]
    Launch {
        /// Its name.
        kernel: &'static str,
        /// The driver's reason.
        status: Status,
    },
    /// The shipped kernels include no such kernel for this device.
    #[error("there is no kernel {kernel} for this device")]
    NoKernel {
        /// Its name.
        kernel: &'static str,
    },
    /// A kernel was called with wrong arguments: a bug in this crate.
    #[error("argument {index} does not fit kernel {kernel}")]
    Argument {
        /// Its name.
        kernel: &'static str,
        /// Index of the argument, from 0.
        index: usize,
    },
    /// A buffer has another length, or belongs to another engine.
    #[error("a buffer has {found} elements, but {expected} are needed")]
    Length {
        /// The required length.
        expected: usize,
        /// The given length; a buffer of another engine counts as 0.
        found: usize,
    },
    /// The device stopped during its work, and the results are lost.
    #[error("the CUDA device was lost: {status}")]
    Lost {
        /// The cause.
        status: Status,
    },
    /// A request that cannot be part of recorded launches ([`super::Cuda::capture`]), or would not outlive them.
    #[error("no buffer can be {refused} while launches are recorded")]
    Recording {
        /// The request.
        refused: &'static str,
    },
    /// Any other failure of the driver.
    #[error("{call} failed: {status}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// Its status.
        status: Status,
    },
    /// NCCL was requested, but is missing or failed. Its running work was ended; the devices still work.
    #[error("NCCL does not work: {reason}")]
    Nccl {
        /// The fault, or its function and status.
        reason: String,
    },
    /// A failure on one of several devices.
    #[error("on CUDA device {ordinal}: {error}")]
    OnDevice {
        /// The device's number.
        ordinal: usize,
        /// The failure.
        error: Box<Self>,
    },
    /// Every engine refuses the input: the caller's error.
    #[error(transparent)]
    Refused(Refused),
}

tercet_core::from_refusals!(CudaError);

impl CudaError {
    /// Returns the error without the device: unwraps [`CudaError::OnDevice`].
    pub fn cause(&self) -> &Self {
        match self {
            Self::OnDevice { error, .. } => error,
            _ => self,
        }
    }

    /// Adds the device that the error is about. Errors of core are about no device.
    pub(super) fn on(self, ordinal: usize) -> Self {
        if matches!(self, Self::OnDevice { .. }) || !self.is_of_the_device() {
            return self;
        }
        let error = Box::new(self);
        Self::OnDevice { ordinal, error }
    }

    /// True if a smaller request, or the same one later, may succeed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.cause(), Self::OutOfMemory { .. })
    }

    /// True if the error is about the device and not about the request: another engine could do it.
    pub const fn is_of_the_device(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// A status of the driver: a `CUresult`. Displayed by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(c_uint);

impl Status {
    pub(super) const OUT_OF_MEMORY: Self = Self(2);
    pub(super) const STUB_LIBRARY: Self = Self(34);
    pub(super) const NO_DEVICE: Self = Self(100);
    pub(super) const NOT_READY: Self = Self(600);

    /// Returns `Ok` if a driver function succeeded.
    pub(super) const fn check(code: c_uint) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// Returns the status of a number that is not 0.
    pub(super) const fn from_code(code: c_uint) -> Self {
        Self(code)
    }

    /// Returns the number.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// True if nothing works on the device from now on. NVIDIA's documentation says this of errors after which "the
    /// process must be terminated and relaunched", and of a device that is gone.
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

/// A version of the driver, in CUDA's numbering.
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

/// Converts a name from the driver.
pub(super) fn text(name: &CStr) -> String {
    name.to_string_lossy().trim().to_owned()
}
