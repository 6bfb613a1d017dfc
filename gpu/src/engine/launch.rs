//! Launches of kernels by name, over a grid of blocks, with arguments that are checked as far as possible.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use tercet_core::number::Plain;

use super::device::Cuda;
use super::error::CudaError;
use super::memory::{DeviceBuffer, Pool};
use super::ptx::Parameter;
use super::timeline::Queued;

/// Maximum number of parameters of a kernel.
const MOST: usize = 24;

/// The blocks of a launch, and the threads and shared memory of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchGrid {
    blocks: [u32; 2],
    threads: u32,
    shared: u32,
}

impl LaunchGrid {
    /// Returns a row of `blocks` blocks of `threads` threads each.
    pub const fn new(blocks: u32, threads: u32) -> Self {
        Self {
            blocks: [blocks, 1],
            threads,
            shared: 0,
        }
    }

    /// Returns as many blocks of `threads` threads as `items` need if a block processes `each` items, but at most
    /// `most`: for kernels that process the remaining items in strides of the grid.
    pub fn strided(items: usize, each: usize, threads: u32, most: u32) -> Self {
        let needed = items.div_ceil(each.max(1));
        let blocks = u32::try_from(needed).unwrap_or(u32::MAX).min(most.max(1));
        Self::new(blocks, threads)
    }

    /// Returns the grid with `rows` rows of such blocks, at most 65,535.
    pub const fn rows(self, rows: u32) -> Self {
        Self {
            blocks: [self.blocks[0], rows],
            ..self
        }
    }

    /// Returns the grid with so many bytes of dynamic shared memory per block.
    pub const fn shared(self, bytes: u32) -> Self {
        Self {
            shared: bytes,
            ..self
        }
    }

    const fn is_empty(&self) -> bool {
        self.blocks[0] == 0 || self.blocks[1] == 0
    }
}

/// An argument of a kernel: a number, or the start of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    bits: u64,
    kind: Parameter,
    /// The pool of the buffer, to identify its engine.
    pool: Option<&'a Arc<Pool>>,
    buffer: PhantomData<&'a ()>,
}

impl Argument<'_> {
    const fn number(bits: u64, kind: Parameter) -> Self {
        Self {
            bits,
            kind,
            pool: None,
            buffer: PhantomData,
        }
    }

    /// Returns a number of 32 bits, in a constant.
    pub(super) const fn word(value: u32) -> Self {
        Self::number(value as u64, Parameter::Word)
    }

    /// Returns a null pointer, for an optional input of a kernel.
    pub const fn none() -> Self {
        Self::number(0, Parameter::Long)
    }
}

macro_rules! numbers {
    ($($number:ty => $parameter:ident, |$x:ident| $bits:expr;)*) => {$(
        impl From<$number> for Argument<'_> {
            fn from($x: $number) -> Self {
                Self::number($bits, Parameter::$parameter)
            }
        }
    )*};
}

numbers! {
    u32 => Word, |x| x.into();
    i32 => Word, |x| x.cast_unsigned().into();
    u64 => Long, |x| x;
    i64 => Long, |x| x.cast_unsigned();
    usize => Long, |x| x as u64;
    f32 => Float, |x| x.to_bits().into();
    f64 => Double, |x| x.to_bits();
}

impl<'a, T: Plain> From<&'a DeviceBuffer<T>> for Argument<'a> {
    fn from(buffer: &'a DeviceBuffer<T>) -> Self {
        Self {
            bits: buffer.pointer(),
            kind: Parameter::Long,
            pool: Some(buffer.pool()),
            buffer: PhantomData,
        }
    }
}

impl<'a, T: Plain> From<&'a mut DeviceBuffer<T>> for Argument<'a> {
    fn from(buffer: &'a mut DeviceBuffer<T>) -> Self {
        Self::from(&*buffer)
    }
}

impl<'a, T: Plain> From<Option<&'a DeviceBuffer<T>>> for Argument<'a> {
    /// `None` is a null pointer.
    fn from(buffer: Option<&'a DeviceBuffer<T>>) -> Self {
        buffer.map_or_else(Self::none, Self::from)
    }
}

impl<'a, T: Plain> DeviceBuffer<T> {
    /// Returns an argument that points to the element `index`, or past the last one if there is none.
    pub fn at(&'a self, index: usize) -> Argument<'a> {
        let offset = index.min(self.len()) * size_of::<T>();
        let whole = Argument::from(self);
        Argument {
            bits: whole.bits + offset as u64,
            ..whole
        }
    }
}

impl Cuda {
    /// Queues a kernel: `kernel` of the module `module` of [`tercet_kernels`], which is loaded if needed. A grid
    /// without blocks does nothing.
    ///
    /// A later call that waits reports failures while the kernel runs.
    ///
    /// # Errors
    /// [`CudaError::NoKernel`]; [`CudaError::Argument`] if number or types of the arguments do not match the kernel, or
    /// a buffer belongs to another engine; [`CudaError::Launch`], [`CudaError::Lost`], [`CudaError::Driver`].
    ///
    /// # Safety
    /// With these arguments and this grid the kernel stays within its buffers. The memory that it reads was written
    /// before. The memory that it writes is not borrowed as shared for longer than the call, except if it writes only
    /// what the owner of that borrow allows.
    pub unsafe fn launch(
        &mut self,
        module: &'static str,
        kernel: &'static str,
        grid: LaunchGrid,
        arguments: &[Argument<'_>],
    ) -> Result<(), CudaError> {
        let kernel = self.modules.kernel(module, kernel, grid.shared)?;
        let name = kernel.name;
        let mistake = |index| CudaError::Argument {
            kernel: name,
            index,
        };
        let count = arguments.len();
        if count != kernel.parameters.len() || count > MOST {
            return Err(mistake(count));
        }
        for (index, (argument, parameter)) in
            arguments.iter().zip(kernel.parameters.iter()).enumerate()
        {
            let ours = argument
                .pool
                .is_none_or(|pool| Arc::ptr_eq(pool, &self.pool));
            if argument.kind != *parameter || !ours {
                return Err(mistake(index));
            }
        }
        if grid.is_empty() {
            return Ok(());
        }
        // The driver copies each argument from its pointer, as many bytes as the parameter has. Every machine with CUDA
        // is little-endian, so a number of 32 bits is the first four of its eight bytes.
        const { assert!(cfg!(target_endian = "little")) };
        let mut bits = [0_u64; MOST];
        let mut pointers = [std::ptr::null_mut::<c_void>(); MOST];
        for ((bits, pointer), argument) in bits.iter_mut().zip(&mut pointers).zip(arguments) {
            *bits = argument.bits;
            *pointer = (&raw mut *bits).cast();
        }
        let launched = self.stream.marked(Queued::Kernel(name), || {
            self.context.call("cuLaunchKernel", |api| {
                // SAFETY: the function is of a loaded module of this context. There is an argument for each parameter,
                // of its size, which the driver copies before it returns. What the kernel does with them is as the
                // caller promises.
                unsafe {
                    api.cuLaunchKernel(
                        kernel.handle,
                        grid.blocks[0],
                        grid.blocks[1],
                        1,
                        grid.threads,
                        1,
                        1,
                        grid.shared,
                        self.stream.handle(),
                        pointers.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                }
            })
        });
        launched.map_err(|error| match error {
            CudaError::Driver {
                call: "cuLaunchKernel",
                status,
            } => CudaError::Launch {
                kernel: name,
                status,
            },
            other => other,
        })
    }

    /// Returns the number of blocks of a kernel that the device runs at a time, with `threads` threads and `shared`
    /// bytes of dynamic shared memory each. This is the `most` of [`LaunchGrid::strided`] with which every block
    /// begins at once and none waits for another to end. The driver is asked once for each kernel.
    ///
    /// # Errors
    /// [`CudaError::NoKernel`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn resident_blocks(
        &mut self,
        module: &'static str,
        kernel: &'static str,
        threads: u32,
        shared: u32,
    ) -> Result<u32, CudaError> {
        let fit = self.modules.fit(module, kernel, threads, shared)?;
        Ok(fit.saturating_mul(self.multiprocessors))
    }

    /// Loads a kernel without launching it. Its first launch then waits for nothing, and also works inside
    /// [`Cuda::capture`], which cannot load kernels.
    ///
    /// # Errors
    /// [`CudaError::NoKernel`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn prepare(
        &mut self,
        module: &'static str,
        kernel: &'static str,
        shared: u32,
    ) -> Result<(), CudaError> {
        self.modules.kernel(module, kernel, shared).map(|_| ())
    }
}
