//! Model files for tests, written by the formats' own crates or byte by byte.

// Each test binary compiles its own copy of this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod runs;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tercet_core::number::Random;

/// A tensor to write.
pub struct Given {
    pub name: &'static str,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Given {
    pub fn new(name: &'static str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Self {
        let shape = shape.to_vec();
        Self {
            name,
            dtype,
            shape,
            bytes,
        }
    }

    pub fn f32(name: &'static str, shape: &[usize], values: &[f32]) -> Self {
        Self::new(name, Dtype::F32, shape, le(values))
    }
}

/// Writes a safetensors file with its own crate.
pub fn safetensors(path: &Path, tensors: &[Given], metadata: &[(&str, &str)]) {
    let views = tensors.iter().map(|t| {
        let view = TensorView::new(t.dtype, t.shape.clone(), &t.bytes).expect("shape fits bytes");
        (t.name, view)
    });
    let metadata: HashMap<String, String> = metadata
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let metadata = Some(metadata).filter(|pairs| !pairs.is_empty());
    let bytes = safetensors::serialize(views, metadata).expect("tensors are serializable");
    std::fs::write(path, bytes).expect("the file is writable");
}

/// A safetensors file of a header as text and data, right or wrong.
pub fn raw_safetensors(path: &Path, header: &str, data: &[u8]) {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).expect("the file is writable");
}

/// An npy file of a header as text and data, right or wrong.
pub fn raw_npy(path: &Path, header: &str, data: &[u8]) {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).expect("the file is writable");
}

/// `count` values around 0 that look like weights: the sum of four uniform draws, exactly representable in 16 bits of
/// mantissa.
pub fn weights(seed: u64, count: usize) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut draw = || random.below(4096) as f32 - 2047.5;
    (0..count)
        .map(|_| (draw() + draw() + draw() + draw()) / 65_536.0)
        .collect()
}

pub fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A folder that goes when the test ends.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Names of all files in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder is readable");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}
