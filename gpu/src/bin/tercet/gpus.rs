//! The GPUs of this machine, or the reason why there is none. Without the feature `cuda` the reason is the build
//! itself.

use serde::Serialize;

/// A device in the report of `tercet info`.
#[derive(Debug, Serialize)]
pub(crate) struct Gpu {
    /// Its number, from 0.
    pub(crate) device: usize,
    pub(crate) name: String,
    /// `9.0`.
    pub(crate) capability: String,
    pub(crate) memory: u64,
    pub(crate) free: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) cache: u64,
    /// The highest clocks, in MHz; `None` if the driver does not report them.
    pub(crate) clock: Option<u32>,
    pub(crate) memory_clock: Option<u32>,
    /// Width of the memory bus in bits; `None` if the driver does not report it.
    pub(crate) memory_bus: Option<u32>,
    /// `12.4`.
    pub(crate) driver: String,
    /// Why the engine cannot use it; `None` if it can.
    pub(crate) refused: Option<&'static str>,
}

#[cfg(feature = "cuda")]
mod found {
    use tercet_gpu::engine::{CudaError, DeviceInfo, device_count, device_info};

    use super::Gpu;

    /// Returns every device, at least one, or in one line the reason why there is none.
    pub(crate) fn all() -> Result<Vec<Gpu>, String> {
        let ask = || -> Result<Vec<Gpu>, CudaError> {
            let devices = 0..device_count()?;
            devices
                .map(|ordinal| Ok(device_info(ordinal)?.into()))
                .collect()
        };
        ask().map_err(|error| error.to_string())
    }

    impl From<DeviceInfo> for Gpu {
        fn from(info: DeviceInfo) -> Self {
            let known = |number: u32| Some(number).filter(|&number| number > 0);
            let megahertz = |kilohertz| known(kilohertz).map(|clock| clock / 1000);
            let (major, minor) = info.capability;
            Self {
                device: info.ordinal,
                name: info.name,
                capability: format!("{major}.{minor}"),
                memory: info.memory as u64,
                free: info.free as u64,
                multiprocessors: info.multiprocessors,
                cache: info.cache as u64,
                clock: megahertz(info.clock),
                memory_clock: megahertz(info.memory_clock),
                memory_bus: known(info.memory_bus),
                driver: info.driver.to_string(),
                refused: info.refused,
            }
        }
    }
}

/// The reason why a build has no devices.
#[cfg(not(feature = "cuda"))]
pub(crate) const WITHOUT: &str = "this build has no CUDA: build it with the feature `cuda`";

#[cfg(not(feature = "cuda"))]
mod found {
    use super::{Gpu, WITHOUT};

    pub(crate) fn all() -> Result<Vec<Gpu>, String> {
        Err(WITHOUT.to_owned())
    }
}

pub(crate) use found::all;
