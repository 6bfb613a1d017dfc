//! `FILE` or `FILE:TENSOR`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file and, where it is named, the tensor in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec<'a> {
    pub(super) path: &'a Path,
    pub(super) tensor: Option<&'a str>,
}

impl<'a> Spec<'a> {
    /// The file is the shortest part before a colon that is one, or all where that is one: colons stand in the names
    /// of files and tensors too. Where no part is a file, the last colon parts them, unless a path goes on behind it
    /// as in `C:\data.npy`; opening the file will then say that it is not there.
    pub(super) fn parse(spec: &'a str) -> Self {
        let split = |at: usize| Self {
            path: Path::new(&spec[..at]),
            tensor: Some(&spec[at + 1..]),
        };
        let whole = Self {
            path: Path::new(spec),
            tensor: None,
        };
        if whole.path.exists() {
            return whole;
        }
        let mut colons = spec.match_indices(':').map(|(at, _)| at);
        if let Some(at) = colons.find(|&at| Path::new(&spec[..at]).is_file()) {
            return split(at);
        }
        match spec.rfind(':') {
            Some(at) if at > 0 && !spec[at..].contains(['/', '\\']) => split(at),
            _ => whole,
        }
    }

    /// True for a file to be read as text: by its extension, unless its first bytes are another format's.
    pub(super) fn is_text(&self) -> bool {
        let named = self.path.extension().is_some_and(|extension| {
            ["csv", "tsv", "txt"]
                .iter()
                .any(|text| extension.eq_ignore_ascii_case(text))
        });
        named && !binary(self.path)
    }
}

/// True where a file begins as GGUF, npy or safetensors files do.
fn binary(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(9).read_to_end(&mut first));
    read.is_ok()
        && (first.starts_with(b"GGUF")
            || first.starts_with(b"\x93NUMPY")
            // The upper bytes of a safetensors header's length are zero, which no text has.
            || first.get(4..8) == Some(&[0; 4]))
}
