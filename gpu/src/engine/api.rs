//! The driver functions that the engine calls, looked up by name when the driver opens.
//!
//! cudarc provides the types, and finds the library if it does not have NVIDIA's name on Linux. Its functions are not
//! called (cudarc 0.19.10, `driver/sys/mod.rs`), for two reasons, and its `result` and `safe` layers call nothing else:
//!
//! - They return the `enum CUresult`. With the binding for CUDA 12.4 it has 96 errors, and CUDA 13.4 has 105: a newer
//!   driver that answers with 721 (`CUDA_ERROR_TENSOR_MEMORY_LEAK`) would make a value that the type does not have, which
//!   is undefined behaviour. Here a status is an integer, and `cuda_driver.rs` tests one that no header knows.
//! - A function that the driver lacks is a panic when it is first called (`load`). The newest binding, whose `enum` has
//!   all of today's errors, calls `cuEventElapsedTime_v2`, which drivers before 12.8 lack; ours run from 11.8 on. Here
//!   all functions are looked up at once, and a missing one is an error that names it.
//!
//! `safe` also allocates from the device's common pool, which knows no limit of one engine; [`super::memory`] has one.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
#[cfg(unix)]
use std::sync::OnceLock;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUmemAccessDesc, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool, CUmodule, CUstream, CUstreamCaptureMode,
};

use libloading::Library;

use super::error::Status;

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The driver functions: all that the engine calls, or there is no table.
        #[allow(non_snake_case, reason = "the driver's names")]
        #[derive(Clone, Copy)]
        pub(super) struct Api {
            $($name: unsafe extern "system" fn($($kind),*) -> c_uint,)*
        }

        impl Api {
            /// Looks up every function. The error is the name of a missing one.
            ///
            /// # Safety
            /// The library is NVIDIA's driver, or behaves like it.
            pub(super) unsafe fn load(library: &'static Library) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $name: {
                        // SAFETY: the driver's interface gives the function of this name this type; `c_uint` has the
                        // size of its status. The library is never unloaded, so the pointer stays good.
                        let found = unsafe {
                            library.get::<unsafe extern "system" fn($($kind),*) -> c_uint>(
                                concat!(stringify!($name), "\0").as_bytes(),
                            )
                        };
                        *found.map_err(|_| stringify!($name))?
                    },
                )*})
            }

            $(
                /// Calls the driver function of this name.
                ///
                /// # Safety
                /// Those of NVIDIA's documentation of the function.
                #[allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's names and arguments")]
                pub(super) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), Status> {
                    // SAFETY: as the caller promises.
                    Status::check(unsafe { (self.$name)($($argument),*) })
                }
            )*
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuGetErrorName(status: c_uint, name: *mut *const c_char);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);

    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxSetCurrent(context: CUcontext);

    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamQuery(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolSetAccess(pool: CUmemoryPool, access: *const CUmemAccessDesc, count: usize);
    cuMemPoolTrimTo(pool: CUmemoryPool, least: usize);
    cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);

    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyPeerAsync(
        to: CUdeviceptr,
        to_context: CUcontext,
        from: CUdeviceptr,
        from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    );
    cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);

    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        threads: c_int,
        shared: usize,
    );
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(executable: CUgraphExec);
    cuGraphDestroy(graph: CUgraph);
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

/// The driver's library on Linux. cudarc first tries `libcuda.so`, which is the name for linking in a toolkit; such a
/// stub may be where the loader looks first.
#[cfg(unix)]
const NAME: &str = "libcuda.so.1";

/// Finds the driver's library, once per process. It is never unloaded.
///
/// # Safety
/// The library with the driver's name is NVIDIA's driver, or behaves like it: its initialisers run.
pub(super) unsafe fn library() -> Option<&'static Library> {
    #[cfg(unix)]
    {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LIBRARY.get() {
            return Some(library);
        }
        // SAFETY: as the caller promises.
        if let Ok(library) = unsafe { Library::new(NAME) } {
            return Some(LIBRARY.get_or_init(|| library));
        }
    }
    // Asked before it is taken: cudarc panics if there is none.
    // SAFETY: as the caller promises.
    unsafe { sys::is_culib_present().then(|| sys::culib()) }
}

/// Returns the driver's version: 12040 for 12.4. It needs no other function of the driver, so that an old driver, which
/// lacks some, is reported as old.
///
/// # Safety
/// As [`Api::load`].
pub(super) unsafe fn version(library: &'static Library) -> Result<c_int, Missing> {
    // SAFETY: the driver's interface gives the function this type.
    let function = unsafe {
        library.get::<unsafe extern "system" fn(*mut c_int) -> c_uint>(b"cuDriverGetVersion\0")
    };
    let function = function.map_err(|_| Missing::Function("cuDriverGetVersion"))?;
    let mut version = 0;
    // SAFETY: the pointer is to a c_int, which is all that the function asks; it may come before cuInit.
    Status::check(unsafe { function(&mut version) }).map_err(Missing::Failed)?;
    Ok(version)
}

/// Why the driver's version is unknown.
#[derive(Debug)]
pub(super) enum Missing {
    /// The driver has no such function.
    Function(&'static str),
    /// The function failed.
    Failed(Status),
}
