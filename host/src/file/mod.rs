//! The file formats: reading through memory maps, and writing that is all or nothing.

pub mod gguf;
pub(crate) mod live;
pub(crate) mod map;
pub mod npy;
pub mod output;
pub mod safetensors;

use std::path::Path;

pub use live::abandon;
pub(crate) use live::random;

use crate::Error;
use crate::tensor_file::Contents;

/// Reads the file `path`; the content decides the format, not the name.
pub(crate) fn read(path: &Path) -> Result<Contents, Error> {
    let map = map::Map::open(path)?;
    let bytes = map.bytes();
    if bytes.starts_with(b"GGUF") {
        gguf::read(map)
    } else if bytes.starts_with(b"\x93NUMPY") {
        npy::read(map)
    } else if looks_like_index(path, bytes) {
        safetensors::read_sharded(map)
    } else if safetensors::plausible(bytes) {
        safetensors::read(map)
    } else {
        let reason = match bytes.len() {
            0 => "it is empty",
            1..8 => "it is shorter than any header",
            _ => "its first bytes belong to none of them",
        };
        Err(Error::UnknownFile {
            path: path.to_path_buf(),
            reason,
        })
    }
}

/// An index is JSON text. A safetensors file begins with the length of its header, so `{` is its ninth byte.
fn looks_like_index(path: &Path, bytes: &[u8]) -> bool {
    let json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    json && bytes.trim_ascii_start().starts_with(b"{")
}

/// A tensor to be written.
#[derive(Clone, Debug)]
pub(crate) struct OutputTensor {
    pub(crate) name: String,
    /// Outermost dimension first.
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: crate::DType,
    pub(crate) bytes: u64,
}
