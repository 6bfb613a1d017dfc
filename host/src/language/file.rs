//! The file of a language model.

use std::path::{Path, PathBuf};

use tercet_core::gguf::Reader;
use tercet_core::model::{DecoderLayer, Model, ModelError};

use super::run::room;
use super::tokenizer::Tokenizer;
use crate::Error;
use crate::file::map::Map;

/// A mapped GGUF file with a language model. Its weights are multiplied in place.
///
/// ```no_run
/// use tercet_host::language::{LanguageFile, View};
///
/// let file = LanguageFile::open("stories15M.gguf".as_ref())?;
/// let mut view = View::of(&file)?;
/// println!("{} layers", view.model(&file)?.layers().len());
/// # Ok::<(), tercet_host::Error>(())
/// ```
#[derive(Debug)]
pub struct LanguageFile {
    path: PathBuf,
    map: Map,
}

impl LanguageFile {
    /// Maps a file; [`View::of`] checks that it is a model.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let map = Map::open(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            map,
        })
    }

    /// Returns a file in memory; messages use `path` as its path.
    pub fn made(path: &Path, bytes: Vec<u8>) -> Self {
        Self {
            path: path.to_path_buf(),
            map: Map::made(path, bytes),
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// Returns its metadata and tensors.
    ///
    /// # Errors
    /// [`Error::BadFile`].
    pub fn reader(&self) -> Result<Reader<'_>, Error> {
        Reader::new(self.bytes()).map_err(|error| match error.tensor() {
            Some(number) => self.tensor(number, &error),
            None => Error::bad(&self.path, "GGUF", error),
        })
    }

    /// Returns its tokenizer.
    ///
    /// # Errors
    /// [`Error::BadFile`]; [`Error::Unsupported`] for an unknown tokenizer.
    pub fn tokenizer(&self) -> Result<Tokenizer, Error> {
        Tokenizer::read(&self.reader()?, self.bytes(), None)
            .map_err(|error| Error::unsupported(&self.path, error))
    }

    /// Returns the error of a tensor, by its number.
    fn tensor(&self, number: u64, reason: &dyn std::fmt::Display) -> Error {
        match Reader::described(self.bytes(), number) {
            Some((_, name)) => Error::tensor(&self.path, name, reason),
            None => Error::bad(&self.path, "GGUF", reason),
        }
    }

    /// Converts an error of a model, adding the file and the tensor.
    pub(super) fn error(&self, error: &ModelError) -> Error {
        match *error {
            ModelError::Superfluous { tensor } => self.tensor(
                tensor,
                &"it has no place in this architecture, or occurs twice",
            ),
            ModelError::Weights { tensor, error } => self.tensor(tensor, &error),
            ModelError::Architecture => {
                let reader = Reader::new(self.bytes()).ok();
                let found = reader.and_then(|reader| reader.get("general.architecture")?.as_str());
                match found {
                    Some(found) => {
                        Error::unsupported(&self.path, format!("{error}: it is `{found}`"))
                    }
                    None => Error::unsupported(&self.path, error),
                }
            }
            error => Error::unsupported(&self.path, error),
        }
    }
}

/// The memory for the parsed contents of a file: the room for a [`Model`].
#[derive(Debug)]
pub struct View<'a> {
    layers: Vec<DecoderLayer<'a>>,
    steps: Vec<u64>,
}

impl<'a> View<'a> {
    /// Returns room for the model of a file.
    ///
    /// # Errors
    /// [`Error::BadFile`], [`Error::Tensor`]; [`Error::Unsupported`] if it is not a supported model, with the key, and
    /// for one of several files of a model.
    pub fn of(file: &'a LanguageFile) -> Result<Self, Error> {
        let reader = file.reader()?;
        let parts = reader.get("split.count").and_then(|parts| parts.as_u64());
        if let Some(parts) = parts.filter(|&parts| parts > 1) {
            let reason = format!(
                "split.count is {parts}: it has a part of the model; `llama-gguf-split --merge` makes one file of all"
            );
            return Err(Error::unsupported(file.path(), reason));
        }
        let (layers, steps) = Model::lengths(&reader).map_err(|error| file.error(&error))?;
        Ok(Self {
            layers: room(DecoderLayer::EMPTY, layers, "layers", file)?,
            steps: vec![0; steps],
        })
    }

    /// Returns the model of the file that this view was made for.
    ///
    /// # Errors
    /// [`Error::Tensor`] and [`Error::Unsupported`] for the first fault.
    pub fn model<'l>(&'l mut self, file: &'a LanguageFile) -> Result<Model<'a, 'l>, Error> {
        let model = Model::new(&file.reader()?, &mut self.layers, &mut self.steps);
        model.map_err(|error| file.error(&error))
    }
}
