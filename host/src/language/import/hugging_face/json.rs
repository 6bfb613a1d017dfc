//! A JSON file of a checkpoint, and its fields by key.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::Error;

const FORMAT: &str = "Hugging Face";

/// An object in a JSON file. A field that is `null` counts as absent.
#[derive(Debug)]
pub(super) struct Object {
    path: PathBuf,
    /// Prefix of the keys in messages: empty, or the keys of the enclosing objects, each with a dot.
    within: String,
    fields: Map<String, Value>,
}

impl Object {
    /// Reads a file; `None` if it does not exist.
    pub(super) fn open(path: PathBuf) -> Result<Option<Self>, Error> {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "read")(error)),
        };
        let fields = serde_json::from_slice(&bytes).map_err(|e| Error::bad(&path, FORMAT, e))?;
        Ok(Some(Self {
            path,
            within: String::new(),
            fields,
        }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error that the file is invalid.
    pub(super) fn bad(&self, reason: impl ToString) -> Error {
        Error::bad(&self.path, FORMAT, reason)
    }

    /// Returns the error that the file has an unsupported setting.
    pub(super) fn unsupported(&self, reason: impl std::fmt::Display) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// Returns the name of a key in messages.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.within)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// True if the file does not have the key, not even with `null`.
    pub(super) fn is_silent(&self, key: &str) -> bool {
        !self.fields.contains_key(key)
    }

    fn of<'a, T>(
        &'a self,
        key: &str,
        what: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let bad = || {
            self.bad(format!(
                "{} is {}, not {what}",
                self.name(key),
                short(value)
            ))
        };
        read(value).map(Some).ok_or_else(bad)
    }

    /// Reads an integer of 32 bits.
    pub(super) fn count(&self, key: &str) -> Result<Option<u32>, Error> {
        let read = |value: &Value| u32::try_from(value.as_u64()?).ok();
        self.of(key, "an integer of 0 to 4294967295", read)
    }

    /// Reads a required integer.
    pub(super) fn needed(&self, key: &str) -> Result<u32, Error> {
        let found = self.count(key)?;
        found.ok_or_else(|| self.bad(format!("{} is missing", self.name(key))))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Error> {
        self.of(key, "a number", Value::as_f64)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        self.of(key, "true or false", Value::as_bool)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, Error> {
        self.of(key, "a text", Value::as_str)
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&[Value]>, Error> {
        self.of(key, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// Reads an object in the object.
    pub(super) fn object(&self, key: &str) -> Result<Option<Self>, Error> {
        let fields = self.of(key, "an object", Value::as_object)?;
        Ok(fields.map(|fields| self.inner(key, fields)))
    }

    /// Reads the objects of a list in the object.
    pub(super) fn objects(&self, key: &str) -> Result<Vec<Self>, Error> {
        let each = |(index, value): (usize, &Value)| {
            let key = format!("{key}[{index}]");
            match value {
                Value::Object(fields) => Ok(self.inner(&key, fields)),
                _ => Err(self.bad(format!("{} is not an object", self.name(&key)))),
            }
        };
        let list = self.list(key)?.unwrap_or_default();
        list.iter().enumerate().map(each).collect()
    }

    fn inner(&self, key: &str, fields: &Map<String, Value>) -> Self {
        Self {
            path: self.path.clone(),
            within: format!("{}{key}.", self.within),
            fields: fields.clone(),
        }
    }

    /// Refuses an existing field that is neither `null` nor one of `harmless`.
    pub(super) fn only(&self, key: &str, harmless: &[Value]) -> Result<(), Error> {
        match self.get(key) {
            Some(value) if !harmless.contains(value) => Err(self.unsupported(format!(
                "{} = {} is not supported",
                self.name(key),
                short(value)
            ))),
            _ => Ok(()),
        }
    }

    /// Iterates over keys and values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.fields.iter()
    }
}

/// Formats a value for a message.
pub(super) fn short(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
