//! The device's primary context, which every handle belongs to.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute};

use super::api::Api;
use super::driver::{self, Driver};
use super::error::{CudaError, Status};

/// Holds the primary context of a device while any part of the engine lives.
pub(super) struct Context {
    driver: &'static Driver,
    device: CUdevice,
    ordinal: usize,
    handle: CUcontext,
    /// The status by which the device was lost, or 0.
    lost: AtomicU32,
}

// SAFETY: the driver's functions may be called from any thread with any context's handle; the handle is never changed.
unsafe impl Send for Context {}
// SAFETY: as above; what changes is atomic.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of the device with this number.
    pub(super) fn new(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        let driver = driver::driver()?;
        let count = driver::device_count()?;
        let absent = CudaError::NoDevice { ordinal, count };
        if ordinal >= count {
            return Err(absent);
        }
        let number = c_int::try_from(ordinal).map_err(|_| absent)?;
        let failed = |call| move |status| CudaError::Driver { call, status };
        let (mut device, mut handle) = (0, std::ptr::null_mut());
        // SAFETY: the driver was started, and the pointer is to a device's number.
        unsafe { driver.api.cuDeviceGet(&mut device, number) }.map_err(failed("cuDeviceGet"))?;
        // SAFETY: the device is one that the driver gave, and the pointer is to a handle. `drop` releases it.
        unsafe { driver.api.cuDevicePrimaryCtxRetain(&mut handle, device) }
            .map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Arc::new(Self {
            driver,
            device,
            ordinal,
            handle,
            lost: AtomicU32::new(0),
        }))
    }

    pub(super) const fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(super) const fn device(&self) -> CUdevice {
        self.device
    }

    pub(super) const fn handle(&self) -> CUcontext {
        self.handle
    }

    /// True if this device and the other can copy their memory to each other without the host.
    pub(super) fn reaches(&self, other: &Self) -> Result<bool, CudaError> {
        if self.device == other.device {
            return Ok(true);
        }
        let mut can = 0;
        self.call("cuDeviceCanAccessPeer", |api| {
            // SAFETY: both devices are ones that the driver gave, and the pointer is to a c_int.
            unsafe { api.cuDeviceCanAccessPeer(&mut can, self.device, other.device) }
        })?;
        Ok(can != 0)
    }

    pub(super) const fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Makes the context current for this thread, and returns the driver functions; an error once the device was lost.
    pub(super) fn bind(&self) -> Result<&'static Api, CudaError> {
        let code = self.lost.load(Ordering::Relaxed);
        self.check("", Status::check(code))?;
        let api = &self.driver.api;
        // SAFETY: the context is retained until `drop`.
        let current = unsafe { api.cuCtxSetCurrent(self.handle) };
        self.check("cuCtxSetCurrent", current)?;
        Ok(api)
    }

    /// Does [`Context::bind`], then a call.
    pub(super) fn call(
        &self,
        name: &'static str,
        call: impl FnOnce(&Api) -> Result<(), Status>,
    ) -> Result<(), CudaError> {
        let api = self.bind()?;
        self.check(name, call(api))
    }

    /// Turns a status into an error, and remembers one that loses the device.
    pub(super) fn check(
        &self,
        call: &'static str,
        result: Result<(), Status>,
    ) -> Result<(), CudaError> {
        let Err(status) = result else { return Ok(()) };
        if status.loses_the_device() {
            // Report the first cause.
            let code = status.code();
            let first = self
                .lost
                .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
            let status = first.err().map_or(status, Status::from_code);
            return Err(CudaError::Lost { status });
        }
        if status == Status::OUT_OF_MEMORY {
            return Err(CudaError::OutOfMemory { asked: 0, free: 0 });
        }
        Err(CudaError::Driver { call, status })
    }

    /// For destructors: makes the call even after the device was lost, so that the driver frees as much as it can. Its
    /// status adds nothing new.
    pub(super) fn release(&self, call: impl FnOnce(&Api) -> Result<(), Status>) {
        let api = &self.driver.api;
        // SAFETY: as in `bind`.
        let _ = unsafe { api.cuCtxSetCurrent(self.handle) };
        let _ = call(api);
    }

    /// Returns an attribute of the device.
    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32, CudaError> {
        let mut value = 0;
        self.call("cuDeviceGetAttribute", |api| {
            // SAFETY: the device is one that the driver gave, and the pointer is to a c_int.
            unsafe { api.cuDeviceGetAttribute(&mut value, attribute, self.device) }
        })?;
        Ok(value)
    }

    /// Returns the free and the total bytes of the device.
    pub(super) fn memory(&self) -> Result<(usize, usize), CudaError> {
        let (mut free, mut total) = (0, 0);
        self.call("cuMemGetInfo", |api| {
            // SAFETY: both pointers are to sizes, and the context is this thread's.
            unsafe { api.cuMemGetInfo_v2(&mut free, &mut total) }
        })?;
        Ok((free, total))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, in `new`; every stream, event, pool and module holds the context, so none is left.
        self.release(|api| unsafe { api.cuDevicePrimaryCtxRelease_v2(self.device) });
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("ordinal", &self.ordinal)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
