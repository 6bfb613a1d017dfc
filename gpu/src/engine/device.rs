//! The engine: one device, and the data that it keeps there.

use std::sync::Arc;

use tercet_core::number::Plain;
use tercet_kernels::Architecture;

use super::context::Context;
use super::error::CudaError;
use super::info::DeviceInfo;
use super::memory::{DeviceBuffer, MemoryStats, Pool};
use super::modules::Modules;
use super::staging::Staging;
use super::stream::Stream;
use super::timeline::{Queued, Timeline};
use super::wgmma::{TensorCores, Wgmma};

/// Options of an engine and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaOptions {
    /// The device's number, from 0.
    pub device: usize,
    /// Maximum bytes of device memory for buffers; `None` is all of it.
    pub memory: Option<usize>,
    /// Number of pinned slots in host memory that copies pass through in each direction, two or more.
    ///
    /// An engine pins at most 2 · `slots` · `slot` bytes of host memory, half of it at the first copy of more than 64
    /// KiB in each direction, and 33 smaller slots for shorter copies, 2 MiB.
    pub slots: usize,
    /// Bytes of a slot, 4096 or more.
    pub slot: usize,
    /// Uses kernels for this capability or older; `None` is the capability of the device. Results are the same.
    pub capability: Option<(u32, u32)>,
    /// The instructions that kernels use if there is a choice.
    pub tensor_cores: TensorCores,
}

impl Default for CudaOptions {
    /// The first device, all of its memory, four slots of 8 MiB in each direction, its newest kernels.
    fn default() -> Self {
        Self {
            device: 0,
            memory: None,
            slots: 4,
            slot: 8 << 20,
            capability: None,
            tensor_cores: TensorCores::Auto,
        }
    }
}

/// The engine on a CUDA device.
///
/// It has its own stream: its work is queued there in order, and a call that returns results to the host waits for
/// them. It may be sent from thread to thread, and one thread uses it at a time. Several engines, for one device or for
/// several, work at the same time, each with its own memory pool. Each call makes the device's primary context current
/// for the calling thread and leaves it so: a program that uses other contexts must set its own again.
///
/// ```
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn doubled_back(values: &[f32]) -> Result<Vec<f32>, CudaError> {
///     let mut cuda = Cuda::first()?;
///     let resident = cuda.upload(values)?;
///     let mut back = vec![0.0; values.len()];
///     cuda.read(&resident, &mut back)?;
///     Ok(back)
/// }
///
/// match doubled_back(&[1.0, 2.0]) {
///     Ok(back) => assert_eq!(back, [1.0, 2.0]),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct Cuda {
    pub(super) context: Arc<Context>,
    pub(super) stream: Arc<Stream>,
    pub(super) pool: Arc<Pool>,
    pub(super) modules: Modules,
    pub(super) staging: Staging,
    pub(super) multiprocessors: u32,
    /// Maximum bytes of shared memory per block.
    pub(super) shared: u32,
    /// The requested instructions.
    pub(super) tensor_cores: TensorCores,
    /// True if the device, the driver and the chosen kernels have warpgroup products.
    pub(super) has_wgmma: bool,
}

impl Cuda {
    /// Opens an engine on the first device, with [`CudaOptions::default`].
    ///
    /// # Errors
    /// As [`Cuda::new`].
    pub fn first() -> Result<Self, CudaError> {
        Self::new(&CudaOptions::default())
    }

    /// Opens an engine on a device.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`], [`CudaError::BrokenDriver`], [`CudaError::OldDriver`], [`CudaError::NoDevice`],
    /// [`CudaError::OldDevice`]; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn new(options: &CudaOptions) -> Result<Self, CudaError> {
        let context = Context::new(options.device)?;
        let info = DeviceInfo::read(&context)?;
        if let Some(reason) = info.refused {
            let name = info.name;
            return Err(CudaError::OldDevice { name, reason });
        }
        let own = info.capability;
        let capability = options.capability.map_or(own, |most| most.min(own));
        let memory = options
            .memory
            .map_or(info.memory, |most| most.min(info.memory));
        let stream = Stream::new(&context)?;
        let staging = Staging::new(&context, options.slots, options.slot)?;
        if let Some(timeline) = Timeline::begin(&context, &stream, &info.name)? {
            stream.trace(&timeline);
            staging.trace(&timeline);
        }
        Ok(Self {
            pool: Pool::new(&stream, memory)?,
            modules: Modules::new(&context, capability),
            staging,
            multiprocessors: info.multiprocessors.max(1),
            shared: u32::try_from(info.shared).unwrap_or(u32::MAX),
            tensor_cores: options.tensor_cores,
            has_wgmma: info.wgmma != Wgmma::Absent && Architecture::Sm90a.runs_on(capability),
            stream,
            context,
        })
    }

    /// Returns the current information about the device.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn device_info(&self) -> Result<DeviceInfo, CudaError> {
        DeviceInfo::read(&self.context)
    }

    /// Returns the compute capability that kernels are chosen for.
    pub fn capability(&self) -> (u32, u32) {
        self.modules.capability()
    }

    /// Returns the number of multiprocessors of the device: launches of a multiple of it keep the whole device busy.
    pub const fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Returns the current and the highest use of the engine's memory.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn memory(&self) -> Result<MemoryStats, CudaError> {
        self.pool.stats()
    }

    /// Returns the bytes that buffers could take now: the free memory of the device and the idle memory of the pool, at
    /// most what the engine may use.
    ///
    /// Other programs and other engines of the device may take some of it in the meantime, and it may not be in one
    /// piece.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn available(&self) -> Result<usize, CudaError> {
        self.pool.available()
    }

    /// True if buffers of these sizes in bytes could be allocated now, all together and including their rounding to
    /// size classes. Ask before a large job; like [`Cuda::available`] it is no promise.
    ///
    /// ```
    /// use tercet_gpu::engine::{Cuda, CudaError};
    ///
    /// fn rows_at_a_time(cuda: &Cuda, rows: usize, bytes: usize) -> Result<usize, CudaError> {
    ///     let mut most = rows;
    ///     while most > 1 && !cuda.can_allocate(&[most * bytes, 4 * most])? {
    ///         most /= 2;
    ///     }
    ///     Ok(most)
    /// }
    ///
    /// match Cuda::first().and_then(|cuda| rows_at_a_time(&cuda, 1000, 64)) {
    ///     Ok(rows) => assert!(rows >= 1),
    ///     Err(error) => println!("not on a GPU: {error}"),
    /// }
    /// ```
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn can_allocate(&self, bytes: &[usize]) -> Result<bool, CudaError> {
        self.pool.has_room(bytes)
    }

    /// Waits for all work, and returns memory that no buffer uses to the system.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn trim(&mut self) -> Result<(), CudaError> {
        self.pool.trim()
    }

    /// Waits until all work is done, and reports a failure in it.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn synchronize(&mut self) -> Result<(), CudaError> {
        self.stream.synchronize()?;
        if let Some(timeline) = self.stream.timeline() {
            timeline.finish();
        }
        Ok(())
    }

    /// Allocates `len` elements on the device, each of them 0.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn zeros<T: Plain>(&mut self, len: usize) -> Result<DeviceBuffer<T>, CudaError> {
        let mut buffer = self.room(len)?;
        self.clear(&mut buffer)?;
        Ok(buffer)
    }

    /// Allocates `len` elements on the device. Their values are arbitrary until something writes them.
    pub(super) fn room<T: Plain>(&mut self, len: usize) -> Result<DeviceBuffer<T>, CudaError> {
        DeviceBuffer::new(&self.pool, len)
    }

    /// Copies a slice to a new buffer on the device.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn upload<T: Plain>(&mut self, values: &[T]) -> Result<DeviceBuffer<T>, CudaError> {
        let mut buffer = self.room(values.len())?;
        self.write(values, &mut buffer)?;
        Ok(buffer)
    }

    /// Copies a slice to a buffer on the device. Work queued from now on sees it.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless the buffer belongs to this engine and has the same length; [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn write<T: Plain>(
        &mut self,
        values: &[T],
        buffer: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        buffer.check(&self.pool, values.len())?;
        // SAFETY: the buffer has as many bytes, and all its uses were queued on this engine's stream.
        unsafe {
            self.staging
                .inward
                .copy_in(&self.stream, None, bytes_of(values), buffer.pointer())
        }
    }

    /// Copies a slice to the elements from `start` on, as [`Cuda::write`] does for all of them.
    pub(super) fn write_at<T: Plain>(
        &mut self,
        values: &[T],
        buffer: &mut DeviceBuffer<T>,
        start: usize,
    ) -> Result<(), CudaError> {
        let to = buffer.part(&self.pool, start, values.len())?;
        // SAFETY: the buffer has as many bytes from there on, and all its uses were queued on this engine's stream.
        unsafe {
            self.staging
                .inward
                .copy_in(&self.stream, None, bytes_of(values), to)
        }
    }

    /// Copies the elements from `start` on to the host, as [`Cuda::read`] does for all of them.
    pub(super) fn read_at<T: Plain>(
        &mut self,
        buffer: &DeviceBuffer<T>,
        start: usize,
        values: &mut [T],
    ) -> Result<(), CudaError> {
        let from = buffer.part(&self.pool, start, values.len())?;
        // SAFETY: the buffer has as many bytes from there on; whoever gave it out had them written.
        unsafe {
            self.staging
                .outward()
                .lock()
                .copy_out(&self.stream, from, bytes_of_mut(values))
        }
    }

    /// Copies a buffer to the host, after all queued work.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless the buffer belongs to this engine and has the same length; [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn read<T: Plain>(
        &mut self,
        buffer: &DeviceBuffer<T>,
        values: &mut [T],
    ) -> Result<(), CudaError> {
        buffer.check(&self.pool, values.len())?;
        // SAFETY: the buffer has as many bytes; whoever gave it out had them written.
        unsafe {
            self.staging.outward().lock().copy_out(
                &self.stream,
                buffer.pointer(),
                bytes_of_mut(values),
            )
        }
    }

    /// Copies one buffer to another, on the device.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless both belong to this engine and have the same length; [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn copy<T: Plain>(
        &mut self,
        from: &DeviceBuffer<T>,
        to: &mut DeviceBuffer<T>,
    ) -> Result<(), CudaError> {
        from.check(&self.pool, from.len())?;
        to.check(&self.pool, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        self.stream.marked(Queued::Copy(from.bytes()), || {
            self.context.call("cuMemcpyDtoDAsync", |api| {
                let (to, stream) = (to.pointer(), self.stream.handle());
                // SAFETY: both have as many bytes and are not one buffer, and their uses are queued on this stream.
                unsafe { api.cuMemcpyDtoDAsync_v2(to, from.pointer(), from.bytes(), stream) }
            })
        })
    }

    /// Sets every byte of a buffer to 0.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless it belongs to this engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn clear<T: Plain>(&mut self, buffer: &mut DeviceBuffer<T>) -> Result<(), CudaError> {
        buffer.check(&self.pool, buffer.len())?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (pointer, bytes) = (buffer.pointer(), buffer.bytes());
        self.stream.marked(Queued::Fill(bytes), || {
            self.context.call("cuMemsetD8Async", |api| {
                // SAFETY: the buffer has as many bytes, and its uses are queued on this stream.
                unsafe { api.cuMemsetD8Async(pointer, 0, bytes, self.stream.handle()) }
            })
        })
    }

    /// Sets every element of a buffer.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless it belongs to this engine; [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn fill(&mut self, buffer: &mut DeviceBuffer<u32>, value: u32) -> Result<(), CudaError> {
        buffer.check(&self.pool, buffer.len())?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (pointer, len) = (buffer.pointer(), buffer.len());
        self.stream.marked(Queued::Fill(buffer.bytes()), || {
            self.context.call("cuMemsetD32Async", |api| {
                // SAFETY: the buffer has as many elements of 32 bits, and its uses are queued on this stream.
                unsafe { api.cuMemsetD32Async(pointer, value, len, self.stream.handle()) }
            })
        })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.stream.is_recording() {
            // The recording was abandoned: buffers still wait to return, and waiting for the stream is impossible.
            self.abandon_capture();
        }
        // Modules are unloaded after this, and nothing of them may run then. A failure was reported before, or there is
        // nobody left to report it to.
        self.stream.settle();
        if let Some(timeline) = self.stream.timeline() {
            timeline.finish();
        }
    }
}

/// Returns the bytes of elements.
pub(super) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain elements are numbers without padding, so each of their bytes has a value, and bytes need no
    // alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the bytes of elements, to be written.
pub(super) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; any bytes are values of a plain element.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
