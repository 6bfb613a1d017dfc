//! Advice about errors that a user can cause: the next step to take.

use std::io;
use std::path::Path;

use tercet_host::Error;

/// Number of file names that are suggested.
const OFFERED: usize = 3;

/// Returns what to do about an error, in a few words; `None` if its message says so already or nothing helps.
pub(crate) fn advice(error: &Error) -> Option<String> {
    let words = match error {
        Error::Io { path, source, .. } => return missing(path, source),
        Error::OutputExists { .. } => "--force overwrites",
        Error::OutputIsInput { .. } => "name another output",
        Error::Memory { .. } => {
            "fewer tokens by -n or --context, a --window or a smaller --kv take less"
        }
        Error::UnknownFile { .. } => {
            "texts are for `tercet train`, `perplexity` and `tokenize`, tables for `tercet kmeans` and `search`"
        }
        Error::BadFile { path, format, .. } if *format == "GGUF" && !begins_as_gguf(path) => {
            "`tercet import` makes a GGUF model of a Hugging Face folder or a llama2.c checkpoint"
        }
        Error::BadFile { format, .. } if matches!(*format, "GGUF" | "safetensors" | "npy") => {
            "the file may be cut or damaged; compare its size with the original's"
        }
        Error::BadFile { format, .. } if format.contains("llama2.c") => {
            "IN is a folder that transformers saved, or a checkpoint of llama2.c"
        }
        _ => return None,
    };
    Some(words.to_owned())
}

/// Returns the names beside a missing file that are most like its own.
pub(crate) fn missing(path: &Path, error: &io::Error) -> Option<String> {
    if error.kind() != io::ErrorKind::NotFound {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = folder.read_dir() else {
        return Some(format!("there is no folder {}", folder.display()));
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // As the names of tensors are suggested: a larger distance is no typing error.
    let most = name.chars().count() / 2;
    let mut names: Vec<(usize, String)> = names
        .map(|other| (strsim::levenshtein(name, &other), other))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    names.sort_unstable();
    names.truncate(OFFERED);
    if names.is_empty() {
        return None;
    }
    let quoted: Vec<String> = names.iter().map(|(_, name)| format!("`{name}`")).collect();
    Some(format!("close to it: {}", quoted.join(", ")))
}

/// Returns true if a file begins with GGUF's four letters, or cannot be read.
fn begins_as_gguf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read =
        std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut magic));
    match read {
        Ok(()) => magic == *b"GGUF",
        Err(error) => error.kind() != io::ErrorKind::UnexpectedEof,
    }
}
