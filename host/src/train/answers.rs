//! A teacher's logits in a file, so that it is asked about a sequence only once.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tercet_core::conformance::Digest;

use crate::Error;

/// The beginning of the file. After it come a digest of the teacher's file, the tokens of a sequence and those of the
/// vocabulary, in 64 bits each. The sequences follow: its tokens, a row of logits for each, both in 32 bits, and a
/// digest of these in 64. All are little-endian.
const MAGIC: &[u8; 16] = b"tercet logits 1\n";
const HEAD: usize = MAGIC.len() + 24;

/// A file of logits, which this process alone uses.
#[derive(Debug)]
pub(super) struct Answers {
    path: PathBuf,
    length: usize,
    vocabulary: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    file: File,
    /// The number of a sequence in the file, by the digest of its tokens.
    numbers: HashMap<u64, u64>,
    count: u64,
}

impl Answers {
    /// Opens the file, or begins it, for sequences of so many tokens. A sequence that was not written to its end is
    /// written over.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::BadFile`] for a file of another kind; [`Error::Unsupported`] for one of another teacher
    /// or of sequences of another length, and for one that another process uses.
    pub(super) fn open(
        path: &Path,
        teacher: u64,
        (length, vocabulary): (usize, usize),
    ) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(Error::io(path, "open"))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::unsupported(path, "another run uses it"),
            TryLockError::Error(error) => Error::io(path, "lock")(error),
        })?;
        let numbers = [teacher, length as u64, vocabulary as u64];
        let numbers = numbers.map(u64::to_le_bytes);
        let head = [MAGIC, numbers.as_flattened()].concat();
        let bytes = file.metadata().map_err(Error::io(path, "read"))?.len();
        let mut found = Vec::new();
        let mut start = Read::by_ref(&mut file).take(HEAD as u64);
        start
            .read_to_end(&mut found)
            .map_err(Error::io(path, "read"))?;
        if found.is_empty() {
            file.write_all(&head).map_err(Error::io(path, "write"))?;
        } else if !found.starts_with(MAGIC) {
            let kind = "file of a teacher's logits";
            return Err(Error::bad(path, kind, "it does not begin like one"));
        } else if found != head {
            return Err(Error::unsupported(
                path,
                "its logits are of another teacher, or of sequences of another length",
            ));
        }
        let answers = Self {
            path: path.to_owned(),
            length,
            vocabulary,
            kept: Mutex::new(Kept {
                file,
                numbers: HashMap::new(),
                count: bytes.saturating_sub(HEAD as u64),
            }),
        };
        answers.index()?;
        Ok(answers)
    }

    /// Finds the whole sequences in the file.
    fn index(&self) -> Result<(), Error> {
        let mut kept = self.kept.lock().expect("no holder panics");
        let kept = &mut *kept;
        kept.count /= self.bytes();
        let mut tokens = vec![0; 4 * self.length];
        for number in 0..kept.count {
            self.read(&mut kept.file, number, &mut tokens)?;
            kept.numbers.insert(digest(&[&tokens]), number);
        }
        Ok(())
    }

    /// Returns the bytes of a sequence.
    pub(super) const fn bytes(&self) -> u64 {
        let values = self.length * (1 + self.vocabulary);
        4 * values as u64 + 8
    }

    /// Returns the number of sequences.
    pub(super) fn count(&self) -> u64 {
        self.kept.lock().expect("no holder panics").count
    }

    /// Reads the beginning of a sequence.
    fn read(&self, file: &mut File, number: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let place = HEAD as u64 + number * self.bytes();
        let done = file.seek(SeekFrom::Start(place));
        done.and_then(|_| file.read_exact(bytes))
            .map_err(Error::io(&self.path, "read"))
    }

    /// Appends a sequence's logits, and returns true, if they are in the file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::BadFile`] if they changed after they were written.
    pub(super) fn find(&self, tokens: &[u32], logits: &mut Vec<f32>) -> Result<bool, Error> {
        let own = bytes_of(tokens, u32::to_le_bytes);
        let mut kept = self.kept.lock().expect("no holder panics");
        let kept = &mut *kept;
        let Some(&number) = kept.numbers.get(&digest(&[&own])) else {
            return Ok(false);
        };
        let mut bytes = vec![0; self.bytes() as usize];
        self.read(&mut kept.file, number, &mut bytes)?;
        let (values, stated) = bytes.split_at(bytes.len() - 8);
        if digest(&[values]).to_le_bytes() != *stated {
            let reason = format!("sequence {number} changed after it was written");
            let kind = "file of a teacher's logits";
            return Err(Error::bad(&self.path, kind, reason));
        }
        let Some(found) = values.strip_prefix(&own[..]) else {
            // Another sequence with the same digest.
            return Ok(false);
        };
        let found = found.as_chunks().0.iter();
        logits.extend(found.map(|&bytes| f32::from_le_bytes(bytes)));
        Ok(true)
    }

    /// Adds a sequence's logits.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keep(&self, tokens: &[u32], logits: &[f32]) -> Result<(), Error> {
        let own = bytes_of(tokens, u32::to_le_bytes);
        let rows = bytes_of(logits, f32::to_le_bytes);
        let all = digest(&[&own, &rows]).to_le_bytes();
        let bytes = [&own[..], &rows, &all].concat();
        let mut kept = self.kept.lock().expect("no holder panics");
        let place = HEAD as u64 + kept.count * self.bytes();
        let done = kept.file.seek(SeekFrom::Start(place));
        done.and_then(|_| kept.file.write_all(&bytes))
            .map_err(Error::io(&self.path, "write"))?;
        let number = kept.count;
        kept.numbers.insert(digest(&[&own]), number);
        kept.count += 1;
        Ok(())
    }
}

fn bytes_of<T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; 4]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

/// Returns FNV-1a of 64 bits.
fn digest(parts: &[&[u8]]) -> u64 {
    let mut digest = Digest::new();
    for part in parts {
        digest.bytes(part);
    }
    digest.value()
}
