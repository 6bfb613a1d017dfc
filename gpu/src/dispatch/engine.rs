//! The engines to choose from, and the trait that a device implements.

use std::fmt;

use serde::{Deserialize, Serialize};
use tercet_core::scalar::Scalar;
use tercet_host::engine::{EngineError, FlowEngine};

use super::Residency;
#[cfg(feature = "cuda")]
use crate::engine::{Cuda, Cudas};

/// An engine that can do a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// [`Scalar`], the code that firmware runs, on the calling thread.
    Scalar,
    /// The SIMD kernels of the processor on the calling thread ([`tercet_host::parallel::Threads::alone`]).
    Simd,
    /// The SIMD kernels of the processor on all threads of the rayon pool.
    Threads,
    /// A device: the first CUDA device, if the build has CUDA; or several of them as one
    /// ([`Builder::devices`](super::Builder::devices)).
    Cuda,
}

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Simd, Self::Threads, Self::Cuda];

    /// The order that decides near ties: of two equally fast engines, the one that leaves more resources to others.
    pub const ORDER: [Self; 4] = [Self::Simd, Self::Scalar, Self::Threads, Self::Cuda];

    /// Returns its name in tables, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Simd => "simd",
            Self::Threads => "threads",
            Self::Cuda => "cuda",
        }
    }

    /// Returns the engine of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device that the dispatcher opens when it pays off: an engine with its own name that can keep data.
pub trait Device: FlowEngine + Residency + fmt::Debug {
    /// Returns device and driver, as tuning files name them. A file of another device is not used.
    fn identity(&self) -> String;

    /// True if the device can still be used after it failed.
    fn works(&mut self) -> bool {
        true
    }

    /// True if buffers of these sizes in bytes could be allocated now, all together. The dispatcher asks before large
    /// jobs, so that a job without room goes to another engine at once. This is no promise, and true if the device
    /// cannot tell.
    fn has_room(&self, bytes: &[usize]) -> bool {
        let _ = bytes;
        true
    }

    /// Copies bytes to the device's memory and back; tuning measures the time. The bytes are the same afterwards.
    ///
    /// # Errors
    /// The errors of the engine.
    fn copy(&mut self, bytes: &mut [u8]) -> Result<(), EngineError>;
}

#[cfg(feature = "cuda")]
impl Device for Cuda {
    fn identity(&self) -> String {
        match self.device_info() {
            Ok(info) => identity(&info),
            // A device that does not answer matches no file.
            Err(error) => error.to_string(),
        }
    }

    /// A lost device stays lost for this process.
    fn works(&mut self) -> bool {
        self.synchronize().is_ok()
    }

    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }

    fn copy(&mut self, bytes: &mut [u8]) -> Result<(), EngineError> {
        let there = self.upload(bytes)?;
        Ok(self.read(&there, bytes)?)
    }
}

/// Several devices as one.
#[cfg(feature = "cuda")]
impl Device for Cudas {
    /// Returns that of the first device: costs are those of one.
    fn identity(&self) -> String {
        self.devices()
            .first()
            .map_or_else(String::new, Cuda::identity)
    }

    fn works(&mut self) -> bool {
        self.synchronize().is_ok()
    }

    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }

    fn copy(&mut self, bytes: &mut [u8]) -> Result<(), EngineError> {
        Ok(self.copy_by_first(bytes)?)
    }
}

/// Returns the name of a device in tuning files.
#[cfg(feature = "cuda")]
pub(super) fn identity(info: &crate::engine::DeviceInfo) -> String {
    format!("{}, driver {}", info.name, info.driver)
}

/// The host itself as a device: a placeholder if the build has no CUDA, and for programs that only simulate a device.
impl Device for Scalar {
    fn identity(&self) -> String {
        self.name()
    }

    fn copy(&mut self, _: &mut [u8]) -> Result<(), EngineError> {
        Ok(())
    }
}
