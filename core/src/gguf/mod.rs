//! GGUF files: a reader that works in place and a writer that streams.
//!
//! A file consists of a header (magic, version, counts), metadata (keys with typed values), descriptions of tensors,
//! and their data, each aligned. [`Reader`] takes the whole file as a slice, checks everything except the data once,
//! and copies nothing. [`Writer`] sends a file to a [`Sink`] from front to back. Neither allocates. No file, even a
//! malicious one, makes the reader panic or read outside the slice.
//!
//! ```
//! use tercet_core::gguf::{Reader, SliceSink, TensorSpec, TensorType, Value, Writer};
//!
//! let tensors = [TensorSpec::new("w", &[256], TensorType::TQ2_0)?];
//! let mut buffer = [0; 512];
//! let mut writer = Writer::new(SliceSink::new(&mut buffer), 2, &tensors)?;
//! writer.entry("general.architecture", "demo")?;
//! writer.entry("demo.layers", 1u32)?;
//! let mut data = writer.into_data()?;
//! data.begin("w")?;
//! data.write(&[0x55; 40])?; // in as many pieces as one likes
//! data.write(&[0x55; 26])?;
//! let len = data.finish()?.len();
//!
//! let reader = Reader::new(&buffer[..len])?;
//! assert_eq!(reader.get("demo.layers"), Some(Value::U32(1)));
//! let tensor = reader.tensor("w").ok_or("no tensor w")?;
//! assert_eq!((tensor.shape.dims(), tensor.kind.name()), (&[256][..], Some("TQ2_0")));
//! assert_eq!(tensor.data, [0x55; 66]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The reader supports little-endian files of versions 3 and 2 (which are equal). For version 1 and big-endian files
//! it returns specific errors. Source: the specification in ggml's repository (`docs/gguf.md`). If it leaves a
//! choice, the reader follows ggml's own, except that it reads nested arrays, as in the specification.

mod aligned;
mod array;
mod cursor;
mod encode;
mod error;
mod names;
mod read;
mod shape;
mod sink;
mod tensor;
mod tensor_type;
mod value;
mod write;

pub use aligned::Aligned;
pub use array::{Array, Elements};
pub use error::{GgufError, LayoutError, Refusal};
pub use read::{Metadata, Reader};
pub use shape::Shape;
pub use sink::{Full, Sink, SliceSink};
pub use tensor::{TensorInfo, Tensors};
pub use tensor_type::{BlockSize, TensorType};
pub use value::{Value, ValueType};
pub use write::{DataWriter, TensorSpec, WriteError, Writer};

/// First bytes of a file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// The version that [`Writer`] writes.
pub const VERSION: u32 = 3;

/// Largest number of dimensions of a tensor.
pub const MAX_DIMS: usize = 4;

/// Largest nesting depth of arrays: 1 is an array of numbers or strings.
pub const MAX_DEPTH: usize = 8;

/// Largest length of a key, in bytes.
pub const MAX_KEY: usize = 65_535;

/// Largest length of a tensor's name in [`Writer`], in bytes, as in the specification. llama.cpp only opens files
/// with names of up to 63 bytes. [`Reader`] accepts longer ones, since other programs write them.
pub const MAX_NAME: usize = 64;

/// The key of the alignment.
pub const ALIGNMENT_KEY: &str = "general.alignment";

/// The alignment of a file that does not specify one.
pub const DEFAULT_ALIGNMENT: u32 = 32;

/// Returns the lowest multiple of `alignment` (a power of two) from `offset` on; `u64::MAX` if it would overflow.
pub(crate) fn align(offset: u64, alignment: u32) -> u64 {
    offset
        .checked_next_multiple_of(alignment.into())
        .unwrap_or(u64::MAX)
}
