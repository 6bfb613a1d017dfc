//! One view of a model file, whatever its format.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tercet_core::block::bitnet_hf::WeightScale;
use tercet_core::block::i2_s::Interleave;

use crate::Error;
use crate::file::{self, map::Map};

pub use crate::dtype::DType;

/// How to read tensors that their file does not describe completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Meaning of the `weight_scale` beside a packed `uint8` tensor.
    pub weight_scale: WeightScale,
    /// The layout of I2_S tensors. If `None`, they are copied but not decoded.
    pub i2_s: Option<Interleave>,
}

/// A file format of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// Hugging Face safetensors, one file or several under an index.
    Safetensors,
    /// A NumPy array.
    Npy,
    /// ggml's GGUF.
    Gguf,
    /// A checkpoint of llama2.c, which [`import`](crate::language::import) reads.
    Llama2c,
}

impl Container {
    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Npy => "npy",
            Self::Gguf => "gguf",
            Self::Llama2c => "llama2.c",
        }
    }
}

/// A tensor of a model: a view into the mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// Its name. For an npy file, the file's name without `.npy`.
    pub name: &'a str,
    /// Its shape, outermost dimension first; empty for a scalar.
    pub shape: &'a [usize],
    /// How to read the bytes.
    pub dtype: DType,
    /// The values, little-endian, row-major. They may begin at any address.
    pub bytes: &'a [u8],
}

impl Tensor<'_> {
    /// Number of values.
    pub fn values(&self) -> usize {
        // The readers refuse shapes whose product overflows.
        crate::dtype::values(self.shape).unwrap_or(0)
    }

    /// Values per row: the innermost dimension (1 for a scalar).
    pub fn row(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Bits per value in the file, 0 for an empty tensor.
    pub fn bits_per_value(&self) -> f64 {
        match self.values() {
            0 => 0.0,
            values => self.bytes.len() as f64 * 8.0 / values as f64,
        }
    }
}

/// The metadata of a file as text. Arrays appear as their first values and their length.
pub type Metadata = Vec<(String, String)>;

/// The place of a tensor. The readers checked that it lies inside its map, and that its shape and type fill it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
    pub(crate) file: usize,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The tensors and metadata that a reader found in a file.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) container: Container,
    pub(crate) maps: Vec<Map>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) metadata: Metadata,
}

/// An open model. Its files are mapped and nothing is copied.
///
/// ```no_run
/// let model = tercet_host::TensorFile::open("model.safetensors")?;
/// for tensor in model.tensors() {
///     println!("{} {:?} {}", tensor.name, tensor.shape, tensor.dtype.name());
/// }
/// # Ok::<(), tercet_host::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    contents: Contents,
    by_name: HashMap<String, usize>,
    reading: Reading,
}

impl TensorFile {
    /// Opens a safetensors file, a `*.safetensors.index.json` with its shards, an npy or a GGUF file.
    ///
    /// The content determines the format, not the name. Every header is checked in full: sizes, offsets and names. No
    /// other process may shorten the files while the model is open: reading a page that is gone ends the process, as in
    /// every program that maps files.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`], [`Error::BadFile`], and [`Error::Tensor`] for a tensor whose type or
    /// layout cannot be represented.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::of(path, file::read(path)?)
    }

    /// Returns a model of the contents that a reader found in `path`.
    ///
    /// # Errors
    /// [`Error::Tensor`] if two tensors have one name.
    pub(crate) fn of(path: &Path, contents: Contents) -> Result<Self, Error> {
        let mut by_name = HashMap::with_capacity(contents.entries.len());
        for (index, entry) in contents.entries.iter().enumerate() {
            if by_name.insert(entry.name.clone(), index).is_some() {
                return Err(Error::tensor(
                    path,
                    &entry.name,
                    "two tensors have this name",
                ));
            }
        }
        Ok(Self {
            path: path.to_path_buf(),
            contents,
            by_name,
            reading: Reading::default(),
        })
    }

    /// Sets how to read tensors that their file does not describe completely.
    #[must_use]
    pub fn with_reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Returns the value given to [`TensorFile::with_reading`], or the default.
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// The path given to [`TensorFile::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every mapped file: the shards of a sharded model, otherwise the one file.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.contents.maps.iter().map(Map::path)
    }

    /// The format.
    pub fn container(&self) -> Container {
        self.contents.container
    }

    /// The tensors in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.contents.entries.iter().map(|entry| self.view(entry))
    }

    /// Returns the tensor with that name.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        let index = *self.by_name.get(name)?;
        self.contents
            .entries
            .get(index)
            .map(|entry| self.view(entry))
    }

    /// Pairs of key and value, sorted by key for safetensors, in file order for GGUF.
    pub fn metadata(&self) -> &Metadata {
        &self.contents.metadata
    }

    /// Bytes of all tensors.
    pub fn tensor_bytes(&self) -> u64 {
        self.contents
            .entries
            .iter()
            .map(|entry| entry.len as u64)
            .sum()
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.contents
            .maps
            .iter()
            .map(|map| map.bytes().len() as u64)
            .sum()
    }

    /// The bytes of the first file: all of a GGUF file, for [`tercet_core::gguf::Reader`].
    pub fn raw(&self) -> &[u8] {
        self.contents.maps.first().map_or(&[], Map::bytes)
    }

    /// Asks for a part of a tensor's bytes before they are read; see [`Map::page_in`].
    pub(crate) fn page_in(&self, part: &[u8]) {
        self.contents.maps.iter().for_each(|map| map.page_in(part));
    }

    /// Releases the memory of a part of a tensor's bytes; see [`Map::release`].
    pub(crate) fn release(&self, part: &[u8]) {
        self.contents.maps.iter().for_each(|map| map.release(part));
    }

    fn view<'a>(&'a self, entry: &'a Entry) -> Tensor<'a> {
        Tensor {
            name: &entry.name,
            shape: &entry.shape,
            dtype: entry.dtype,
            bytes: &self.contents.maps[entry.file].bytes()[entry.start..][..entry.len],
        }
    }
}
