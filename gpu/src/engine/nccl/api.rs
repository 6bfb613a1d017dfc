//! The NCCL functions that the engine calls, looked up by name when several devices first need them.
//!
//! As for the driver, results are integers, and a missing function is an error. cudarc provides NCCL's types. Its
//! library search is not used, because it tries `libnccl.so` and names with CUDA versions, but systems that only run
//! programs have just `libnccl.so.2`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclDataType_t, ncclRedOp_t};
use libloading::Library;

use crate::engine::error::CudaError;

/// Names of the library, tried in turn.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// 2.4 is the oldest version that reports failures after a call has returned.
const NEEDED: (c_int, &str) = (2400, "2.4");

/// NCCL, once it was found to work. A failure is not stored: a missing library may be installed later.
static NCCL: OnceLock<Api> = OnceLock::new();

/// An unsuccessful status of NCCL: an `ncclResult_t`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure(pub(super) c_uint);

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The NCCL functions: all that the engine calls, or there is no table.
        #[allow(non_snake_case, reason = "NCCL's names")]
        pub(super) struct Api {
            ncclGetErrorString: unsafe extern "C" fn(c_uint) -> *const c_char,
            $($name: unsafe extern "C" fn($($kind),*) -> c_uint,)*
            /// Contains the functions.
            _library: Library,
        }

        impl Api {
            /// Looks up every function. The error is the name of a missing one.
            ///
            /// # Safety
            /// The library is NVIDIA's NCCL, or behaves like it.
            unsafe fn load(library: Library) -> Result<Self, &'static str> {
                // SAFETY: NCCL's interface gives the function of this name this type; an enum of C is an int.
                let string = unsafe { library.get::<unsafe extern "C" fn(c_uint) -> *const c_char>(b"ncclGetErrorString\0") };
                let string = *string.map_err(|_| "ncclGetErrorString")?;
                $(
                    // SAFETY: as above. The table keeps the library, so the pointer stays good.
                    let found = unsafe {
                        library.get::<unsafe extern "C" fn($($kind),*) -> c_uint>(
                            concat!(stringify!($name), "\0").as_bytes(),
                        )
                    };
                    #[allow(non_snake_case, reason = "NCCL's names")]
                    let $name = *found.map_err(|_| stringify!($name))?;
                )*
                Ok(Self { ncclGetErrorString: string, $($name,)* _library: library })
            }

            $(
                /// Calls the NCCL function of this name.
                ///
                /// # Safety
                /// Those of NVIDIA's documentation of the function.
                #[allow(non_snake_case, clippy::too_many_arguments, reason = "NCCL's names and arguments")]
                pub(super) unsafe fn $name(&self, $($argument: $kind),*) -> Result<(), Failure> {
                    // SAFETY: as the caller promises.
                    match unsafe { (self.$name)($($argument),*) } {
                        0 => Ok(()),
                        code => Err(Failure(code)),
                    }
                }
            )*
        }
    };
}

functions! {
    ncclGetVersion(version: *mut c_int);
    ncclCommInitAll(communicators: *mut ncclComm_t, count: c_int, devices: *const c_int);
    ncclCommDestroy(communicator: ncclComm_t);
    ncclCommAbort(communicator: ncclComm_t);
    ncclCommGetAsyncError(communicator: ncclComm_t, error: *mut c_uint);
    ncclGroupStart();
    ncclGroupEnd();
    ncclReduceScatter(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: ncclDataType_t,
        operation: ncclRedOp_t,
        communicator: ncclComm_t,
        stream: cudaStream_t,
    );
    ncclAllGather(
        from: *const c_void,
        to: *mut c_void,
        count: usize,
        kind: ncclDataType_t,
        communicator: ncclComm_t,
        stream: cudaStream_t,
    );
}

impl Api {
    /// Returns the error of a call, with NCCL's description and number.
    pub(super) fn failed(&self, call: &str, Failure(code): Failure) -> CudaError {
        // SAFETY: NCCL gives a string that ends with a zero and is never freed, for every number.
        let words = unsafe {
            let words = (self.ncclGetErrorString)(code);
            (!words.is_null()).then(|| CStr::from_ptr(words).to_string_lossy())
        };
        let words = words.unwrap_or("no description".into());
        does_not_work(format!("{call} failed: {words} ({code})"))
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

pub(super) const fn does_not_work(reason: String) -> CudaError {
    CudaError::Nccl { reason }
}

/// Finds NCCL, once per process.
pub(super) fn nccl() -> Result<&'static Api, CudaError> {
    if let Some(api) = NCCL.get() {
        return Ok(api);
    }
    let api = open()?;
    Ok(NCCL.get_or_init(|| api))
}

fn open() -> Result<Api, CudaError> {
    let mut libraries = NAMES.iter().filter_map(|name| {
        // SAFETY: a library's initialisers may do anything; that the system has NVIDIA's NCCL under this name is what
        // every user of it trusts.
        unsafe { Library::new(*name) }.ok()
    });
    let library = libraries
        .next()
        .ok_or_else(|| does_not_work(format!("no library {}", NAMES[0])))?;
    // SAFETY: a library of the name was found; as above.
    let api = unsafe { Api::load(library) }
        .map_err(|name| does_not_work(format!("it has no function {name}")))?;
    let mut version = 0;
    // SAFETY: the pointer is to a c_int, which is all that the function asks.
    unsafe { api.ncclGetVersion(&mut version) }
        .map_err(|failure| api.failed("ncclGetVersion", failure))?;
    let (least, name) = NEEDED;
    if version < least {
        let reason = format!("it has version code {version}; {name} or newer is needed");
        return Err(does_not_work(reason));
    }
    Ok(api)
}
