//! A saved session: the messages, how answers are drawn, and the model.

use std::fs;
use std::path::Path;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tercet_core::conformance::Digest;

use super::history::History;
use super::message::Message;
use crate::Error;
use crate::file::output::Output;
use crate::language::LanguageFile;

/// Bytes per separately digested piece.
const PIECE: usize = 1 << 20;

/// Identifies the file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelId {
    /// The file's name, only for people.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// 16 hexadecimal digits: FNV-1a of 64 bits over the digests of its pieces of 1 MiB, with eight little-endian bytes
    /// each.
    pub digest: String,
}

impl ModelId {
    /// Returns the identity of a file, reading all of it. It detects other and damaged files, but does not resist
    /// someone who makes a file with the same digest.
    pub fn of(file: &LanguageFile) -> Self {
        let bytes = file.bytes();
        let digests = bytes.par_chunks(PIECE).map(digest);
        let mut all = Digest::new();
        for piece in digests.collect::<Vec<u64>>() {
            all.bytes(&piece.to_le_bytes());
        }
        let name = file.path().file_name().unwrap_or_default();
        Self {
            file: name.to_string_lossy().into_owned(),
            bytes: bytes.len() as u64,
            digest: format!("{:016x}", all.value()),
        }
    }

    /// True if it is the same file, whatever its name.
    pub fn is(&self, other: &Self) -> bool {
        (self.bytes, &self.digest) == (other.bytes, &other.digest)
    }
}

/// Returns FNV-1a of 64 bits.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.bytes(bytes);
    digest.value()
}

/// A conversation as JSON, with the caller's `options`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session<O> {
    /// The version of the format, which is 1.
    pub tercet_chat: u32,
    /// The model.
    pub model: ModelId,
    /// How answers are made.
    pub options: O,
    /// The template, if it is not the file's.
    pub template: Option<String>,
    /// Number of messages after the system message that prompts leave out.
    pub left_out: usize,
    /// All messages.
    pub messages: Vec<Message>,
}

impl<O: Serialize + DeserializeOwned> Session<O> {
    /// Returns the session of a conversation.
    pub fn new(model: ModelId, options: O, template: Option<String>, history: &History) -> Self {
        Self {
            tercet_chat: 1,
            model,
            options,
            template,
            left_out: history.left_out(),
            messages: history.messages().to_vec(),
        }
    }

    /// Reads a session of a model.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::BadFile`] for a file that is no session, with the place, and for another version;
    /// [`Error::Unsupported`] for a session of another model.
    pub fn read(path: &Path, model: &ModelId) -> Result<(Self, History), Error> {
        let text = fs::read(path).map_err(Error::io(path, "read"))?;
        let bad = |reason: String| Error::bad(path, "session", reason);
        let session: Self =
            serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if session.tercet_chat != 1 {
            let version = session.tercet_chat;
            return Err(bad(format!(
                "its version is {version}, but only version 1 is known"
            )));
        }
        if !session.model.is(model) {
            let (own, given) = (&session.model, &model);
            return Err(Error::unsupported(
                path,
                format!(
                    "it is of another model: {} of {} bytes and digest {}, but {} has {} and {}",
                    own.file, own.bytes, own.digest, given.file, given.bytes, given.digest
                ),
            ));
        }
        let history = History::of(session.messages.clone(), session.left_out);
        let history = history.map_err(|error| bad(error.to_string()))?;
        Ok((session, history))
    }

    /// Writes it, completely or not at all, and returns the file's size.
    ///
    /// # Errors
    /// [`Error::OutputExists`] if there is already a file that may not be overwritten; [`Error::Io`].
    pub fn write(&self, path: &Path, overwrite: bool) -> Result<u64, Error> {
        let mut json =
            serde_json::to_vec_pretty(self).map_err(|error| Error::bad(path, "session", error))?;
        json.push(b'\n');
        let mut output = Output::create(path, [], overwrite)?;
        output.write(&json)?;
        output.finish()
    }
}
