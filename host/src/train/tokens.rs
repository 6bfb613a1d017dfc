//! The tokens of a text, in memory or in a mapped file.

use std::path::Path;

use crate::Error;
use crate::file::map::Map;
use crate::file::output::Output;

/// The beginning of the file. After it come a digest of the source of the tokens, the number of held-out tokens, these,
/// and the others; the numbers have 64 bits and the tokens 32, all little-endian.
const MAGIC: &[u8; 16] = b"tercet tokens 1\n";
const HEAD: usize = MAGIC.len() + 16;

/// Tokens of a text, one after another.
#[derive(Debug)]
pub enum Tokens {
    /// In memory.
    InMemory(Vec<u32>),
    /// In a file, from a byte on.
    Mapped(TokenFile),
}

impl Tokens {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::InMemory(tokens) => tokens.len(),
            Self::Mapped(file) => file.bytes().len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the tokens from `first` on; there are enough to fill `to`.
    pub(super) fn copy(&self, first: usize, to: &mut [u32]) {
        match self {
            Self::InMemory(tokens) => to.copy_from_slice(&tokens[first..][..to.len()]),
            Self::Mapped(file) => {
                let from = &file.bytes()[first..][..to.len()];
                for (to, &bytes) in to.iter_mut().zip(from) {
                    *to = u32::from_le_bytes(bytes);
                }
            }
        }
    }
}

/// A mapped file of tokens: the parts that were read stay in memory as long as the system has room.
#[derive(Debug)]
pub struct TokenFile {
    map: Map,
    held_out: usize,
}

impl TokenFile {
    /// Opens a file that [`TokenWriter`] wrote; `None` if there is none, or it is of other texts.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`]; [`Error::BadFile`] for a file of another kind or an incomplete one.
    pub fn open(path: &Path, made_of: u64) -> Result<Option<Self>, Error> {
        if !path.exists() {
            return Ok(None);
        }
        let map = Map::open(path)?;
        let bad = |reason| Error::bad(path, "file of tokens", reason);
        let head = map.bytes().first_chunk::<HEAD>();
        let numbers = head.and_then(|head| head.strip_prefix(MAGIC));
        let Some([found, held_out]) = numbers.map(|numbers| numbers.as_chunks::<8>().0) else {
            return Err(bad("it does not begin like one"));
        };
        let held_out = u64::from_le_bytes(*held_out);
        let (tokens, rest) = map.bytes()[HEAD..].as_chunks::<4>();
        let held_out = usize::try_from(held_out)
            .ok()
            .filter(|&count| count <= tokens.len() && rest.is_empty());
        let held_out = held_out.ok_or_else(|| bad("it ends before its last token"))?;
        Ok((u64::from_le_bytes(*found) == made_of).then_some(Self { map, held_out }))
    }

    /// Returns the held-out tokens.
    pub fn held_out(&self) -> Vec<u32> {
        let all = self.all()[..self.held_out].iter();
        all.map(|&bytes| u32::from_le_bytes(bytes)).collect()
    }

    fn all(&self) -> &[[u8; 4]] {
        self.map.bytes()[HEAD..].as_chunks().0
    }

    /// Returns the tokens to train on.
    fn bytes(&self) -> &[[u8; 4]] {
        &self.all()[self.held_out..]
    }
}

/// Writes a file of tokens, completely or not at all.
#[derive(Debug)]
pub struct TokenWriter {
    output: Output,
}

impl TokenWriter {
    /// Begins a file, which replaces an existing one, with the held-out tokens. `made_of` is a digest of everything
    /// that decides the tokens.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, made_of: u64, held_out: &[u32]) -> Result<Self, Error> {
        let mut output = Output::create(path, [], true)?;
        output.write(MAGIC)?;
        output.write(&made_of.to_le_bytes())?;
        output.write(&(held_out.len() as u64).to_le_bytes())?;
        let mut writer = Self { output };
        writer.extend(held_out)?;
        Ok(writer)
    }

    /// Adds tokens to train on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn extend(&mut self, tokens: &[u32]) -> Result<(), Error> {
        for tokens in tokens.chunks(1 << 14) {
            let bytes: Vec<u8> = tokens
                .iter()
                .flat_map(|token| token.to_le_bytes())
                .collect();
            self.output.write(&bytes)?;
        }
        Ok(())
    }

    /// Puts the file in place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<u64, Error> {
        self.output.finish()
    }
}
