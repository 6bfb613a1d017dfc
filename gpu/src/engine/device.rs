//! The engine: one device, and what it keeps there.

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

/// How an engine uses its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaOptions {
    /// The device's number, from 0.
    pub device: usize,
    /// The most bytes of the device's memory that buffers may take; `None` is all of it.
    pub memory: Option<usize>,
    /// Slots of pinned memory that copies pass through each way, two or more.
    ///
    /// An engine pins 2 · `slots` · `slot` bytes of the host's memory at most, half of it at the first copy each way of more than 64 KiB,
    /// and 33 smaller slots for copies of less, 2 MiB.
    pub slots: usize,
    /// Bytes of a slot, 4096 or more.
    pub slot: usize,
    /// Kernels for no newer capability than this; `None` is the device's own. Results are the same.
    pub capability: Option<(u32, u32)>,
    /// Which instructions kernels use where there are several.
    pub tensor_cores: TensorCores,
}

impl Default for CudaOptions {
    /// The first device, all of its memory, four slots of 8 MiB each way, its newest kernels.
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
/// It has a stream of its own: what it is asked for is queued there in order, and a call that gives results to the host waits for them. It
/// may be sent from thread to thread and used by one at a time; several engines, of one device or of several, work side by side, each
/// with its own pool of memory. Each call makes the device's primary context the calling thread's and leaves it so: a program that uses
/// other contexts sets its own again.
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
    /// Shared memory that a block may have, in bytes.
    pub(super) shared: u32,
    /// Which of several are asked for.
    pub(super) tensor_cores: TensorCores,
    /// Whether the device, the driver and the kernels that are chosen have warpgroup products.
    pub(super) has_wgmma: bool,
}

impl Cuda {
    /// An engine on the first device, as [`CudaOptions::default`] has it.
    ///
    /// # Errors
    /// As [`Cuda::new`].
    pub fn first() -> Result<Self, CudaError> {
        Self::new(&CudaOptions::default())
    }

    /// An engine on a device.
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

    /// What the device tells of itself now.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn device_info(&self) -> Result<DeviceInfo, CudaError> {
        DeviceInfo::read(&self.context)
    }

    /// The compute capability that kernels are chosen for.
    pub fn capability(&self) -> (u32, u32) {
        self.modules.capability()
    }

    /// Multiprocessors of the device: launches of a multiple of them keep all of it busy.
    pub const fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// How full the engine's memory is and was.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn memory(&self) -> Result<MemoryStats, CudaError> {
        self.pool.stats()
    }

    /// Bytes that buffers could take now: what the device has free and what the pool keeps idle, no more than the engine may use.
    ///
    /// Other programs, and other engines of the device, may take of it in the meantime, and it need not be in one piece.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn available(&self) -> Result<usize, CudaError> {
        self.pool.available()
    }

    /// Whether buffers of so many bytes each could be had now, all together, their rounding to size classes counted. To be asked before a
    /// large job; as [`Cuda::available`] it is no promise.
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

    /// Waits for all work, and gives memory that no buffer has back to the system.
    ///
    /// # Errors
    /// [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn trim(&mut self) -> Result<(), CudaError> {
        self.pool.trim()
    }

    /// Waits until all work is done, and tells what failed in it.
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

    /// Room for `len` elements on the device, each of them 0.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn zeros<T: Plain>(&mut self, len: usize) -> Result<DeviceBuffer<T>, CudaError> {
        let mut buffer = self.room(len)?;
        self.clear(&mut buffer)?;
        Ok(buffer)
    }

    /// Room for `len` elements on the device, whose values are anything until something writes them.
    pub(super) fn room<T: Plain>(&mut self, len: usize) -> Result<DeviceBuffer<T>, CudaError> {
        DeviceBuffer::new(&self.pool, len)
    }

    /// A copy of a slice on the device.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn upload<T: Plain>(&mut self, values: &[T]) -> Result<DeviceBuffer<T>, CudaError> {
        let mut buffer = self.room(values.len())?;
        self.write(values, &mut buffer)?;
        Ok(buffer)
    }

    /// Copies a slice to the device. What is queued from now on sees it.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless the buffer is of this engine and as long; [`CudaError::Lost`], [`CudaError::Driver`].
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

    /// Copies a slice to the elements from `start` on, as [`Cuda::write`] does to all of them.
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

    /// Copies the elements from `start` on to the host, as [`Cuda::read`] does all of them.
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

    /// Copies a buffer to the host, after all work that was queued.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless the buffer is of this engine and as long; [`CudaError::Lost`], [`CudaError::Driver`].
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
    /// [`CudaError::Length`] unless both are of this engine and as long; [`CudaError::Lost`], [`CudaError::Driver`].
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
    /// [`CudaError::Length`] unless it is of this engine; [`CudaError::Lost`], [`CudaError::Driver`].
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
    /// [`CudaError::Length`] unless it is of this engine; [`CudaError::Lost`], [`CudaError::Driver`].
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
            // Whoever recorded has lost sight of it: buffers still wait to return, and nothing can be waited for.
            self.abandon_capture();
        }
        // Modules are unloaded after this, and nothing of them may run then. A failure was told before, or there is nobody left to tell.
        self.stream.settle();
        if let Some(timeline) = self.stream.timeline() {
            timeline.finish();
        }
    }
}

/// The bytes of elements.
pub(super) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain elements are numbers without padding, so each of their bytes has a value, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of elements, to be written.
pub(super) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; any bytes are values of a plain element.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
