//! The engines there are to choose from, and what is asked of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use tercet_core::scalar::Scalar;
use tercet_host::engine::{EngineError, FlowEngine};

use super::Residency;
#[cfg(feature = "cuda")]
use crate::engine::Cuda;

/// Who may do a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// [`Scalar`], the code that firmware runs, on the calling thread.
    Scalar,
    /// The processor's kernels on the calling thread ([`tercet_host::parallel::Threads::alone`]).
    Simd,
    /// The processor's kernels on all threads of the rayon pool.
    Threads,
    /// A device: the first CUDA device, where the build has CUDA.
    Cuda,
}

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Simd, Self::Threads, Self::Cuda];

    /// The order in which near ties settle: of two engines that are as fast the one that leaves more to others.
    pub const ORDER: [Self; 4] = [Self::Simd, Self::Scalar, Self::Threads, Self::Cuda];

    /// Its name in tables, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Simd => "simd",
            Self::Threads => "threads",
            Self::Cuda => "cuda",
        }
    }

    /// The engine of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device that the dispatcher opens when it pays: an engine with a name of its own, and data that stays there.
pub trait Device: FlowEngine + Residency + fmt::Debug {
    /// Device and driver, as tuning files name them; a file of another is not used.
    fn identity(&self) -> String;

    /// Whether anything can come of it still, after it failed.
    fn works(&mut self) -> bool {
        true
    }

    /// Whether buffers of so many bytes each could be had now, all together: asked before large jobs, so that one without room is another
    /// engine's at once. No promise, and true where it cannot be told.
    fn has_room(&self, bytes: &[usize]) -> bool {
        let _ = bytes;
        true
    }

    /// Copies bytes to the device's memory and back, which tuning times. They are the same afterwards.
    ///
    /// # Errors
    /// The engine's.
    fn copy(&mut self, bytes: &mut [u8]) -> Result<(), EngineError>;
}

#[cfg(feature = "cuda")]
impl Device for Cuda {
    fn identity(&self) -> String {
        match self.device_info() {
            Ok(info) => identity(&info),
            // A device that does not answer is of no file.
            Err(error) => error.to_string(),
        }
    }

    /// A lost device is lost to the process.
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

/// A device as tuning files name it.
#[cfg(feature = "cuda")]
pub(super) fn identity(info: &crate::engine::DeviceInfo) -> String {
    format!("{}, driver {}", info.name, info.driver)
}

/// The host itself as a device: it stands where a build has no CUDA, and for a device in programs that only rehearse one.
impl Device for Scalar {
    fn identity(&self) -> String {
        self.name()
    }

    fn copy(&mut self, _: &mut [u8]) -> Result<(), EngineError> {
        Ok(())
    }
}
