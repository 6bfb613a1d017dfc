//! Finds the driver, and checks that it is new enough.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use super::api::{self, Api, Missing};
use super::error::{CudaError, Status, Version};

/// The oldest usable driver. Its CUDA version is the first that knows all devices up to Hopper, and it reads the PTX of
/// all kernels except those with warpgroup products
/// ([`Architecture::versions`](tercet_kernels::Architecture::versions)).
pub const NEEDED: Version = Version {
    major: 11,
    minor: 8,
};

/// The driver, once it was found to work. A failure is not stored: a missing driver may be installed later.
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// A working driver.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) api: Api,
    pub(super) version: Version,
}

/// Finds the driver and starts it, once per process.
///
/// It checks before it calls: functions are looked up one by one, and the version is read before functions that an old
/// driver lacks.
pub(super) fn driver() -> Result<&'static Driver, CudaError> {
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let driver = open()?;
    Ok(DRIVER.get_or_init(|| driver))
}

/// Returns [`CudaError::NoDriver`] if no driver is installed. Starts nothing.
pub(crate) fn missing_driver() -> Option<CudaError> {
    // SAFETY: as in `open`.
    let library = unsafe { api::library() };
    library.is_none().then_some(CudaError::NoDriver)
}

fn open() -> Result<Driver, CudaError> {
    // SAFETY: it opens a library of the driver's name. A library's initialisers may do anything; that the system has
    // NVIDIA's under this name is what every user of CUDA trusts.
    let library = unsafe { api::library() }.ok_or(CudaError::NoDriver)?;
    let broken = |reason| CudaError::BrokenDriver { reason };
    let lacks = |name| broken(format!("it has no function {name}"));
    // SAFETY: a library was found; as above.
    let version = unsafe { api::version(library) }.map_err(|missing| match missing {
        Missing::Function(name) => lacks(name),
        Missing::Failed(status) => broken(refusal(status)),
    })?;
    let version = version_of(version);
    // A stub library, which serves only for linking, may return no version; `cuInit` below identifies it.
    if version < NEEDED && version.major > 0 {
        return Err(CudaError::OldDriver {
            found: version,
            needed: NEEDED,
        });
    }
    // SAFETY: a library was found; as above.
    let api = unsafe { Api::load(library) }.map_err(lacks)?;
    // SAFETY: the flags must be 0 and are; it may be called more than once.
    match unsafe { api.cuInit(0) } {
        Ok(()) if version < NEEDED => Err(broken("it reports no version".to_owned())),
        Ok(()) => Ok(Driver { api, version }),
        Err(Status::NO_DEVICE) => Err(CudaError::NoDevice {
            ordinal: 0,
            count: 0,
        }),
        Err(status) => Err(broken(refusal(status))),
    }
}

/// Describes a status in words, if the table that names them is not available yet.
fn refusal(status: Status) -> String {
    if status == Status::STUB_LIBRARY {
        "it is a stub library, which is only for linking".to_owned()
    } else {
        format!("it does not start ({status})")
    }
}

/// 12040 is 12.4.
fn version_of(version: c_int) -> Version {
    let version = u32::try_from(version).unwrap_or(0);
    Version {
        major: version / 1000,
        minor: version % 1000 / 10,
    }
}

/// Returns the driver's name of a status, if a driver was found that knows it.
pub(super) fn name(status: Status) -> Option<&'static str> {
    let mut name = std::ptr::null();
    let driver = DRIVER.get()?;
    // SAFETY: the pointer is to a pointer, which is all that the function asks.
    unsafe { driver.api.cuGetErrorName(status.code(), &mut name) }.ok()?;
    if name.is_null() {
        return None;
    }
    // SAFETY: the driver gives a string that ends with a zero and is never freed.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

/// Returns the number of devices. If there is none, the error says whether the driver is missing.
///
/// # Errors
/// [`CudaError::NoDriver`], [`CudaError::BrokenDriver`], [`CudaError::OldDriver`], [`CudaError::NoDevice`].
///
/// May be called from any thread.
pub fn device_count() -> Result<usize, CudaError> {
    let driver = driver()?;
    let mut count = 0;
    // SAFETY: the pointer is to a c_int, and the driver was started.
    match unsafe { driver.api.cuDeviceGetCount(&mut count) } {
        Ok(()) | Err(Status::NO_DEVICE) => {}
        Err(status) => {
            return Err(CudaError::Driver {
                call: "cuDeviceGetCount",
                status,
            });
        }
    }
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(CudaError::NoDevice {
            ordinal: 0,
            count: 0,
        }),
    }
}

/// Returns the driver's version.
///
/// # Errors
/// [`CudaError::NoDriver`], [`CudaError::BrokenDriver`], [`CudaError::OldDriver`]; [`CudaError::NoDevice`] if the
/// driver does not start without a device.
pub fn driver_version() -> Result<Version, CudaError> {
    Ok(driver()?.version)
}
