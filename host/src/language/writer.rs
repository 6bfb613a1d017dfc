//! Writes the file of a model: metadata first, then tensors in order, from bytes or from values.

use std::path::{Path, PathBuf};

use tercet_core::gguf::{TensorSpec, Value};

use super::parameters::Parameters;
use super::tensors::Slot;
use super::vocabulary::{Lists, Vocabulary};
use crate::convert::{Coder, codec};
use crate::dtype::DType;
use crate::file::gguf;
use crate::file::output::Output;
use crate::{Error, Result};

/// The description in a file.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// The hyper-parameters.
    pub parameters: Parameters,
    /// The tokens.
    pub vocabulary: Vocabulary,
    /// Additional keys, such as `tercet.cache`; readers skip keys that they do not know.
    pub extras: Vec<(String, Value<'a>)>,
    /// The type of most matrices, which is stored as `general.file_type`.
    pub dtype: DType,
}

impl Description<'_> {
    /// Returns in one line why no program can read the file or compute with it.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (tokens, named) = (self.vocabulary.tokens.len(), self.parameters.vocab_size);
        let sizes = || {
            (tokens != named as usize)
                .then(|| format!("vocab_size is {named}, but the vocabulary has {tokens} tokens"))
        };
        let parameters = self.parameters.refusal();
        parameters
            .or_else(sizes)
            .or_else(|| self.vocabulary.refusal())
    }

    /// Returns the whole file in memory, with tensors of zeros.
    pub(crate) fn zeros(&self, file_type: u32, specs: &[TensorSpec<'_>]) -> Result<Vec<u8>> {
        if let Some(reason) = self.refusal() {
            return Err(Error::options(reason));
        }
        let lists = Lists::new(&self.vocabulary);
        let made = gguf::zeros(&self.entries(&lists), Some(file_type), specs);
        made.map_err(|refusal| Error::options(refusal.to_string()))
    }

    /// Returns all keys except the file's type, with lists made from the vocabulary.
    pub(crate) fn entries<'a>(&'a self, lists: &'a Lists<'a>) -> Vec<gguf::Pair<'a>> {
        let mut entries = self.parameters.entries();
        entries.extend(lists.entries());
        entries.extend(self.extras.iter().cloned());
        entries
    }
}

/// Returns the descriptions of tensors to write to `path`, each with its type.
///
/// # Errors
/// [`Error::Tensor`] if rows do not divide into a type's blocks, and for types that GGUF does not have.
pub fn specs<'a>(path: &Path, tensors: &[(&'a Slot, DType)]) -> Result<Vec<TensorSpec<'a>>> {
    let spec = |&(slot, dtype): &(&'a Slot, DType)| {
        let refuse = |reason: String| Error::tensor(path, &slot.name, reason);
        let kind = gguf::write_dtype(dtype)
            .ok_or_else(|| refuse(format!("GGUF has no type {}", dtype.name())))?;
        let dims: Vec<u64> = slot.shape.iter().rev().map(|&dim| dim as u64).collect();
        TensorSpec::new(&slot.name, &dims, kind).map_err(|error| refuse(error.to_string()))
    };
    tensors.iter().map(spec).collect()
}

/// A file being written. It appears under its name only when [`Writer::finish`] is called, and then complete.
///
/// The bytes depend only on the given data: a file contains no date, path, host or program version.
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_host::file::output::Output;
/// use tercet_host::language::{Architecture, Description, Extras, Parameters, Vocabulary, Writer, specs};
/// use tercet_host::DType;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.gguf");
/// let parameters = Parameters {
///     architecture: Architecture::Llama,
///     context_length: 64,
///     embedding_length: 32,
///     block_count: 1,
///     feed_forward_length: 64,
///     head_count: 2,
///     head_count_kv: 1,
///     head_length: 16,
///     vocab_size: 259,
///     rms_epsilon: 1e-5,
///     rope_base: 1e4,
///     rope_factor: None,
/// };
/// let slots = parameters.tensors(Extras::default());
/// let types = slots.iter().map(|slot| match slot.role.is_matrix() {
///     true => (slot, DType::Block(Format::Q8_0)),
///     false => (slot, DType::F32),
/// });
/// let specs = specs(&path, &types.collect::<Vec<_>>())?;
/// let description = Description {
///     parameters,
///     vocabulary: Vocabulary::bytes(),
///     extras: Vec::new(),
///     dtype: DType::Block(Format::Q8_0),
/// };
/// let mut writer = Writer::new(Output::create(&path, [], false)?, &description, &specs)?;
/// for slot in &slots {
///     writer.values(&vec![0.5; slot.values()])?;
/// }
/// assert_eq!(writer.finish()?, path.metadata()?.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    file: gguf::Writer<'a>,
    path: PathBuf,
    specs: &'a [TensorSpec<'a>],
    /// The next tensor.
    next: usize,
}

impl<'a> Writer<'a> {
    /// Writes header, metadata and descriptions.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a description that contradicts itself; [`Error::Options`] for a type that cannot be
    /// written; [`Error::Tensor`] for a name that is too long; [`Error::Io`].
    pub fn new(
        output: Output,
        description: &Description<'_>,
        specs: &'a [TensorSpec<'a>],
    ) -> Result<Self> {
        let path = output.path().to_path_buf();
        if let Some(reason) = description.refusal() {
            return Err(Error::unsupported(&path, reason));
        }
        let (_, file_type) = codec(description.dtype)?;
        let lists = Lists::new(&description.vocabulary);
        let entries = description.entries(&lists);
        Ok(Self {
            file: gguf::Writer::described(output, &entries, Some(file_type), specs)?,
            path,
            specs,
            next: 0,
        })
    }

    /// Writes the next tensor from its bytes.
    ///
    /// # Errors
    /// [`Error::Tensor`] if their number does not match shape and type; [`Error::Unsupported`] if no tensor is left;
    /// [`Error::Io`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let spec = self.following()?;
        // Checked when the specification was made.
        let needed = spec.byte_len().unwrap_or(u64::MAX);
        if needed != bytes.len() as u64 {
            let reason = format!("it needs {needed} bytes, but {} were given", bytes.len());
            return Err(Error::tensor(&self.path, spec.name, reason));
        }
        self.file.write(self.next, bytes)?;
        self.next += 1;
        Ok(())
    }

    /// Writes the next tensor from values, with the rule of its type: floats are rounded half to even, and blocks use
    /// ggml's rule.
    ///
    /// # Errors
    /// [`Error::Tensor`] for another number of values than the shape has, and for a value that is not finite or too
    /// large for the type, with its index; [`Error::Options`] for a type that cannot be written; those of
    /// [`Writer::bytes`].
    pub fn values(&mut self, values: &[f32]) -> Result<()> {
        let spec = self.following()?;
        let refuse = |reason: String| Error::tensor(&self.path, spec.name, reason);
        let elements = spec.shape.elements();
        if elements != values.len() as u64 {
            return Err(refuse(format!(
                "it has {elements} values, but {} were given",
                values.len()
            )));
        }
        let (codec, _) = codec(gguf::read_dtype(spec.kind))?;
        let mut bytes = vec![0; codec.bytes(values.len())];
        codec.encode(0, values, &mut bytes).map_err(refuse)?;
        self.bytes(&bytes)
    }

    fn following(&self) -> Result<TensorSpec<'a>> {
        let none = || Error::unsupported(&self.path, "every tensor is written");
        self.specs.get(self.next).copied().ok_or_else(none)
    }

    /// Puts the file in place and returns its size.
    ///
    /// # Errors
    /// [`Error::Tensor`] with the first unwritten tensor; [`Error::OutputExists`] and [`Error::Io`].
    pub fn finish(self) -> Result<u64> {
        match self.specs.get(self.next) {
            Some(spec) if spec.byte_len() != Ok(0) => {
                Err(Error::tensor(&self.path, spec.name, "it was not written"))
            }
            _ => self.file.finish(),
        }
    }
}
