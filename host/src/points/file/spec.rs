//! `FILE` or `FILE:TENSOR`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file and, if named, the tensor in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec<'a> {
    pub(super) path: &'a Path,
    pub(super) tensor: Option<&'a str>,
}

impl<'a> Spec<'a> {
    /// Splits a spec. Names of files and tensors may contain colons too. If the whole spec is an existing path, it is
    /// the file. Otherwise the file is the shortest part before a colon that is a file. If no part is a file, the last
    /// colon separates file and tensor, unless a path continues after it as in `C:\data.npy`. Opening the file then
    /// reports that it does not exist.
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

    /// Returns true if the file is to be read as text: it has such an extension, and its first bytes are not those of
    /// another format.
    pub(super) fn is_text(&self) -> bool {
        let named = self.path.extension().is_some_and(|extension| {
            ["csv", "tsv", "txt"]
                .iter()
                .any(|text| extension.eq_ignore_ascii_case(text))
        });
        named && !binary(self.path)
    }
}

/// Returns true if a file begins as GGUF, npy or safetensors files do.
fn binary(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(9).read_to_end(&mut first));
    read.is_ok()
        && (first.starts_with(b"GGUF")
            || first.starts_with(b"\x93NUMPY")
            // The upper bytes of a safetensors header's length are zero, which no text has.
            || first.get(4..8) == Some(&[0; 4]))
}
