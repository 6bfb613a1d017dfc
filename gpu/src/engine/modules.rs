//! Kernels by name, loaded when they are first used.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::{env, fmt, fs, io};

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUmodule};
use tercet_kernels::{Capability, Module};

use super::context::Context;
use super::error::CudaError;
use super::ptx::{Parameter, parameters};

/// Dynamic shared memory that a kernel may use without setting an attribute: kernels here use at most 16 KiB of the 48
/// KiB that all have statically.
const UNASKED: u32 = 32 << 10;

/// The loaded modules, and their kernels.
pub(super) struct Modules {
    context: Arc<Context>,
    /// The capability that kernels are chosen for: that of the device, or an older one.
    capability: Capability,
    loaded: HashMap<&'static str, Loaded>,
}

struct Loaded {
    handle: CUmodule,
    ptx: Cow<'static, str>,
    kernels: HashMap<&'static str, Kernel>,
    /// Number of blocks of a kernel that a multiprocessor runs at a time, by its threads and dynamic shared memory.
    fits: HashMap<(&'static str, u32, u32), u32>,
}

/// A kernel of a loaded module, valid as long as its engine.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) handle: CUfunction,
    pub(super) name: &'static str,
    pub(super) parameters: Arc<[Parameter]>,
    /// Dynamic shared memory that it may use, in bytes.
    shared: u32,
}

// SAFETY: the driver's functions take modules and functions from any thread; they are changed only through `&mut`.
unsafe impl Send for Modules {}
// SAFETY: as above.
unsafe impl Sync for Modules {}

impl Modules {
    pub(super) fn new(context: &Arc<Context>, capability: Capability) -> Self {
        Self {
            context: Arc::clone(context),
            capability,
            loaded: HashMap::new(),
        }
    }

    pub(super) const fn capability(&self) -> Capability {
        self.capability
    }

    /// Returns the kernel `name` of the module `module`, ready for `shared` bytes of dynamic shared memory.
    ///
    /// For the first kernel of a module the driver compiles the module's text, and keeps the result on disk for the
    /// next process.
    pub(super) fn kernel(
        &mut self,
        module: &'static str,
        name: &'static str,
        shared: u32,
    ) -> Result<Kernel, CudaError> {
        let absent = CudaError::NoKernel { kernel: name };
        let loaded = match self.loaded.get_mut(module) {
            Some(loaded) => loaded,
            None => {
                let found = tercet_kernels::module(module, self.capability);
                let ptx = text(found.ok_or_else(|| absent.clone())?);
                let handle = load(&self.context, &ptx, name)?;
                self.loaded.entry(module).or_insert(Loaded {
                    handle,
                    ptx,
                    kernels: HashMap::new(),
                    fits: HashMap::new(),
                })
            }
        };
        let kernel = match loaded.kernels.get_mut(name) {
            Some(kernel) => kernel,
            None => {
                let parameters = parameters(&loaded.ptx, name).ok_or_else(|| absent.clone())?;
                let symbol = CString::new(name).map_err(|_| absent)?;
                let mut handle = std::ptr::null_mut();
                self.context.call("cuModuleGetFunction", |api| {
                    // SAFETY: the module is loaded, the name ends with a zero, and the pointer is to a handle.
                    unsafe { api.cuModuleGetFunction(&mut handle, loaded.handle, symbol.as_ptr()) }
                })?;
                let kernel = Kernel {
                    handle,
                    name,
                    parameters: parameters.into(),
                    shared: UNASKED,
                };
                loaded.kernels.entry(name).or_insert(kernel)
            }
        };
        if shared > kernel.shared {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // No device has more than 227 KiB, so it fits an i32; the driver refuses more than this device has.
            let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
            self.context.call("cuFuncSetAttribute", |api| {
                // SAFETY: the function is of a loaded module.
                unsafe { api.cuFuncSetAttribute(kernel.handle, attribute, bytes) }
            })?;
            kernel.shared = shared;
        }
        Ok(kernel.clone())
    }

    /// Returns how many blocks of a kernel, with `threads` threads and `shared` bytes of dynamic shared memory each, a
    /// multiprocessor runs at a time; at least 1. The driver is asked once.
    pub(super) fn fit(
        &mut self,
        module: &'static str,
        name: &'static str,
        threads: u32,
        shared: u32,
    ) -> Result<u32, CudaError> {
        let key = (name, threads, shared);
        let known = self
            .loaded
            .get(module)
            .and_then(|loaded| loaded.fits.get(&key));
        if let Some(&fit) = known {
            return Ok(fit);
        }
        let kernel = self.kernel(module, name, shared)?;
        // No block has more threads than an i32 can hold.
        let (mut fit, threads) = (0, i32::try_from(threads).unwrap_or(i32::MAX));
        self.context
            .call("cuOccupancyMaxActiveBlocksPerMultiprocessor", |api| {
                // SAFETY: the function is of a loaded module, and the pointer is to a c_int.
                unsafe {
                    api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        &mut fit,
                        kernel.handle,
                        threads,
                        shared as usize,
                    )
                }
            })?;
        // If no block fits, the launch reports the reason.
        let fit = u32::try_from(fit).unwrap_or(0).max(1);
        if let Some(loaded) = self.loaded.get_mut(module) {
            loaded.fits.insert(key, fit);
        }
        Ok(fit)
    }
}

/// Returns the text of a module: the shipped one. Debug builds instead use the text from the folder `TERCET_PTX`, laid
/// out as `kernels/ptx`, if it has one, so that tests can check a variant of a kernel on a device without a new build.
fn text(module: &Module) -> Cow<'static, str> {
    let shipped = Cow::Borrowed(module.ptx);
    if !cfg!(debug_assertions) {
        return shipped;
    }
    let Some(folder) = env::var_os("TERCET_PTX") else {
        return shipped;
    };
    let architecture = module.architecture.target().trim_start_matches("sm_");
    let file = format!("{}.ptx", module.name);
    match fs::read_to_string(Path::new(&folder).join(architecture).join(file)) {
        Ok(text) => Cow::Owned(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => shipped,
        // The driver refuses this text: nothing else may run in its place.
        Err(error) => Cow::Owned(error.to_string()),
    }
}

/// Lets the driver compile a module's text.
fn load(context: &Context, ptx: &str, kernel: &'static str) -> Result<CUmodule, CudaError> {
    let text = CString::new(ptx).map_err(|_| CudaError::NoKernel { kernel })?;
    let mut handle = std::ptr::null_mut();
    context.call("cuModuleLoadData", |api| {
        // SAFETY: the text ends with a zero, and the pointer is to a handle. `drop` unloads the module.
        unsafe { api.cuModuleLoadData(&mut handle, text.as_ptr().cast()) }
    })?;
    Ok(handle)
}

impl Drop for Modules {
    fn drop(&mut self) {
        for loaded in self.loaded.values() {
            // SAFETY: loaded once and unloaded once. The engine waits for its stream before, so no kernel of it runs.
            self.context
                .release(|api| unsafe { api.cuModuleUnload(loaded.handle) });
        }
    }
}

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modules")
            .field("capability", &self.capability)
            .field("loaded", &self.loaded.keys())
            .finish_non_exhaustive()
    }
}
