//! The device that is measured beside the processor, and its copies.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tercet_host::measure::{Device, DeviceError};

use crate::gpus::Gpu;

/// A device, and its description.
pub(super) struct OnDevice {
    pub(super) device: Box<dyn Device>,
    gpu: Gpu,
}

impl fmt::Debug for OnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device.fmt(f)
    }
}

/// A device in the report.
#[derive(Debug, Serialize)]
pub(super) struct Described {
    #[serde(flatten)]
    pub(super) gpu: Gpu,
    /// Sorted by working set.
    pub(super) copies: Vec<Copied>,
    /// `None` if there was no room for the data.
    pub(super) transfers: Option<Transfers>,
}

/// Copies from ordinary memory to the device and back.
#[derive(Debug, Serialize)]
pub(super) struct Transfers {
    /// Bytes of each.
    pub(super) bytes: usize,
    pub(super) to_device_bytes_per_second: f64,
    pub(super) from_device_bytes_per_second: f64,
}

/// A copy within the device's memory.
#[derive(Debug, Serialize)]
pub(super) struct Copied {
    /// Bytes read and written.
    pub(super) bytes: usize,
    pub(super) bytes_per_second: f64,
}

impl OnDevice {
    /// Returns the first CUDA device, or the reason why there is none.
    #[cfg(feature = "cuda")]
    pub(super) fn first() -> Result<Self, String> {
        let open = || {
            let cuda = tercet_gpu::engine::Cuda::first()?;
            let gpu = cuda.device_info()?.into();
            let device = Box::new(super::cuda::OnCuda::new(cuda));
            Ok(Self { device, gpu })
        };
        open().map_err(|error: tercet_gpu::engine::CudaError| error.to_string())
    }

    /// Returns the reason why this build has none.
    #[cfg(not(feature = "cuda"))]
    pub(super) fn first() -> Result<Self, String> {
        Err(crate::gpus::WITHOUT.to_owned())
    }

    /// Measures copies of several sizes, as many as fit the device.
    pub(super) fn describe(mut self, quick: bool, budget: Duration) -> Result<Described, String> {
        let most = if quick { 24 } else { 30 };
        let mut copies = Vec::new();
        for power in (15..=most).step_by(3) {
            let bytes = 1 << power;
            match self.device.copy_rate(bytes, budget) {
                Ok(bytes_per_second) => copies.push(Copied {
                    bytes,
                    bytes_per_second,
                }),
                Err(DeviceError::NoRoom(_) | DeviceError::NoKernel) => break,
                Err(DeviceError::Failed(reason)) => return Err(reason),
            }
        }
        let bytes = if quick { 1 << 25 } else { 1 << 28 };
        let transfers = match self.device.transfer_rates(bytes, budget) {
            Ok([to, from]) => Some(Transfers {
                bytes,
                to_device_bytes_per_second: to,
                from_device_bytes_per_second: from,
            }),
            Err(DeviceError::NoRoom(_) | DeviceError::NoKernel) => None,
            Err(DeviceError::Failed(reason)) => return Err(reason),
        };
        Ok(Described {
            gpu: self.gpu,
            copies,
            transfers,
        })
    }
}
