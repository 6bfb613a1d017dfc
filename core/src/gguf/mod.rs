//! GGUF files: a reader that works in place and a writer that streams.
//!
//! A file is a header (magic, version, counts), metadata (keys with typed values), descriptions of tensors, and
//! their data, each aligned. [`Reader`] takes the whole file as a slice, checks all but the data once, and
//! copies nothing; [`Writer`] sends a file to a [`Sink`] from front to back. Neither allocates, and no file, however
//! hostile, makes the reader panic or read outside the slice.
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
//! Read are versions 3 and 2 (alike), little-endian. Version 1 and big-endian files are refused, each by its own
//! error. Source: the specification in ggml's repository (`docs/gguf.md`); where it leaves a choice, ggml's
//! own reader decides, except that nested arrays are read, as the specification has them.

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

pub use array::{Array, Elements};
pub use error::{GgufError, LayoutError, Refusal};
pub use read::{Metadata, Reader};
pub use shape::Shape;
pub use sink::{Full, Sink, SliceSink};
pub use tensor::{TensorInfo, Tensors};
pub use tensor_type::{Layout, TensorType};
pub use value::{Value, ValueType};
pub use write::{DataWriter, TensorSpec, WriteError, Writer};

/// The first bytes of a file.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// The version that [`Writer`] writes.
pub const VERSION: u32 = 3;

/// The most dimensions of a tensor.
pub const MAX_DIMS: usize = 4;

/// How deep arrays may be nested: 1 is an array of numbers or strings.
pub const MAX_DEPTH: usize = 8;

/// The longest key in bytes.
pub const MAX_KEY: usize = 65_535;

/// The longest name in bytes that [`Writer`] gives a tensor, as the specification has it. llama.cpp opens files
/// with names of up to 63 bytes only. [`Reader`] takes longer ones, since other programs write them.
pub const MAX_NAME: usize = 64;

/// The key of the alignment.
pub const ALIGNMENT_KEY: &str = "general.alignment";

/// The alignment of a file that names none.
pub const DEFAULT_ALIGNMENT: u32 = 32;

/// The lowest multiple of `alignment` (a power of two) from `offset` on; `u64::MAX` where it would overflow.
pub(crate) fn align(offset: u64, alignment: u32) -> u64 {
    offset
        .checked_next_multiple_of(alignment.into())
        .unwrap_or(u64::MAX)
}
