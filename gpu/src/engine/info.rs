//! Information about a device.

use std::ffi::CStr;
use std::fmt;

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::context::Context;
use super::error::{CudaError, Version, text};
use super::wgmma::{self, Wgmma};

/// A device, as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, from 0.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its memory, in bytes.
    pub memory: usize,
    /// Memory that was just free, in bytes; other programs use it too.
    pub free: usize,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    /// The driver's version.
    pub driver: Version,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors, in kHz; 0 if the driver does not report it.
    pub clock: u32,
    /// The highest clock of the memory, in kHz; 0 if the driver does not report it.
    pub memory_clock: u32,
    /// Width of the memory bus in bits; 0 if the driver does not report it.
    pub memory_bus: u32,
    /// Its second-level cache, in bytes.
    pub cache: usize,
    /// Maximum shared memory of one block, in bytes.
    pub shared: usize,
    /// State of its warpgroup products in this process.
    pub wgmma: Wgmma,
    /// Why the engine cannot use it; `None` if it can.
    pub refused: Option<&'static str>,
}

/// The oldest capability that kernels are shipped for.
const OLDEST: (u32, u32) = (7, 5);

/// Returns the current information about a device, even if the engine cannot use it.
///
/// # Errors
/// [`CudaError::NoDriver`], [`CudaError::BrokenDriver`], [`CudaError::OldDriver`], [`CudaError::NoDevice`];
/// [`CudaError::Lost`], [`CudaError::Driver`].
pub fn device_info(ordinal: usize) -> Result<DeviceInfo, CudaError> {
    DeviceInfo::read(&*Context::new(ordinal)?)
}

impl DeviceInfo {
    /// Asks the driver.
    pub(super) fn read(context: &Context) -> Result<Self, CudaError> {
        let number = |attribute| {
            let value = context.attribute(attribute)?;
            Ok::<u32, CudaError>(u32::try_from(value).unwrap_or(0))
        };
        // A driver that no longer knows an attribute does not report it.
        let known = |attribute| match number(attribute) {
            Err(CudaError::Driver { .. }) => Ok(0),
            other => other,
        };
        let (free, _) = context.memory()?;
        let capability = (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let pools = number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let refused = match (capability >= OLDEST, pools) {
            (false, _) => Some("kernels need compute capability 7.5"),
            (true, false) => Some("it has no memory pools"),
            (true, true) => None,
        };
        let mut memory = 0;
        context.call("cuDeviceTotalMem", |api| {
            // SAFETY: the pointer is to a size, and the device is one that the driver gave.
            unsafe { api.cuDeviceTotalMem_v2(&mut memory, context.device()) }
        })?;
        Ok(Self {
            ordinal: context.ordinal(),
            name: name(context)?,
            memory,
            free,
            capability,
            driver: context.driver().version,
            multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            clock: known(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            memory_clock: known(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            memory_bus: known(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
            cache: known(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
            shared: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
                as usize,
            wgmma: if wgmma::is_there(capability, context.driver().version) {
                wgmma::known(context.ordinal())
            } else {
                Wgmma::Absent
            },
            refused,
        })
    }
}

fn name(context: &Context) -> Result<String, CudaError> {
    let mut bytes = [0_u8; 256];
    context.call("cuDeviceGetName", |api| {
        let len = bytes.len() as i32 - 1;
        // SAFETY: the buffer has more than `len` bytes, and the device is one that the driver gave.
        unsafe { api.cuDeviceGetName(bytes.as_mut_ptr().cast(), len, context.device()) }
    })?;
    // The driver could not write the last byte, so there is always a zero.
    Ok(CStr::from_bytes_until_nul(&bytes).map_or_else(|_| String::new(), text))
}

impl fmt::Display for DeviceInfo {
    /// One line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ordinal,
            name,
            capability: (major, minor),
            multiprocessors,
            driver,
            wgmma,
            ..
        } = self;
        let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
        write!(
            f,
            "device {ordinal}: {name}, {:.1} GiB ({:.1} free), capability {major}.{minor}, {multiprocessors} multiprocessors",
            gib(self.memory),
            gib(self.free),
        )?;
        if self.clock > 0 {
            write!(f, " at {} MHz", self.clock / 1000)?;
        }
        write!(f, ", driver {driver}")?;
        match wgmma {
            Wgmma::Wrong => write!(f, ", wgmma not used: it gives other results than mma"),
            _ => Ok(()),
        }
    }
}
