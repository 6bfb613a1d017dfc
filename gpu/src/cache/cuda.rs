//! The memory of a CUDA device as a tier.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_core::number::Plain;

use super::Tiers;
use crate::engine::{Cuda, CudaError, DeviceBuffer};

/// Elements in a device's memory, and in a `Vec` on the host.
///
/// The engine is shared: code that works on the values locks it too, and must not hold the lock while it asks the
/// cache. Sizes are the bytes of the elements; the engine's size classes add at most an eighth of them, or 255 bytes.
///
/// ```
/// use std::sync::{Arc, Mutex, PoisonError};
///
/// use tercet_gpu::cache::{Cache, CacheOptions, Computed, CudaTiers};
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn twice() -> Result<u64, Box<dyn std::error::Error>> {
///     let cuda = Arc::new(Mutex::new(Cuda::first()?));
///     let options = CacheOptions { device_bytes: 1 << 20, host_bytes: 1 << 20, ..CacheOptions::default() };
///     let cache = Cache::new(options, CudaTiers::new(Arc::clone(&cuda)));
///     for _ in 0..2 {
///         let weights = cache.get_or_compute(&"layer 0", || {
///             Ok::<_, CudaError>(Computed::Host(vec![1_i8, 2, 3]))
///         })?;
///         let mut back = [0; 3];
///         cuda.lock().unwrap_or_else(PoisonError::into_inner).read(&weights, &mut back)?;
///         assert_eq!(back, [1, 2, 3]);
///     }
///     Ok(cache.stats().device_hits)
/// }
///
/// match twice() {
///     Ok(hits) => assert_eq!(hits, 1),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// ```
pub struct CudaTiers<T> {
    cuda: Arc<Mutex<Cuda>>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Plain> CudaTiers<T> {
    /// Returns the memory of an engine's device.
    pub const fn new(cuda: Arc<Mutex<Cuda>>) -> Self {
        Self {
            cuda,
            elements: PhantomData,
        }
    }

    fn cuda(&self) -> MutexGuard<'_, Cuda> {
        // An engine is as good after a panic as before, because each of its calls is complete.
        self.cuda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Plain + Default> Tiers for CudaTiers<T> {
    type Device = DeviceBuffer<T>;
    type Host = Vec<T>;
    type Error = CudaError;

    fn upload(&self, host: &Vec<T>) -> Result<DeviceBuffer<T>, CudaError> {
        self.cuda().upload(host)
    }

    fn download(&self, device: &DeviceBuffer<T>) -> Result<Vec<T>, CudaError> {
        let mut values = vec![T::default(); device.len()];
        self.cuda().read(device, &mut values)?;
        Ok(values)
    }

    fn device_bytes(&self, device: &DeviceBuffer<T>) -> usize {
        device.bytes()
    }

    fn host_bytes(&self, host: &Vec<T>) -> usize {
        size_of_val(host.as_slice())
    }

    fn uploaded_bytes(&self, host: &Vec<T>) -> usize {
        size_of_val(host.as_slice())
    }

    fn is_full(&self, error: &CudaError) -> bool {
        error.is_out_of_memory()
    }
}

impl<T> fmt::Debug for CudaTiers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaTiers").finish_non_exhaustive()
    }
}
