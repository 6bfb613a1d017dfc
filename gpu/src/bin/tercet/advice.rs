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
        Error::BadFile {
            path,
            format: "csv",
            reason,
        } => return field(path, reason),
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

/// Returns what to do about a field of a CSV file that is no number, from the reason that the reader gave.
fn field(path: &Path, reason: &str) -> Option<String> {
    let (place, what) = reason.split_once(": ")?;
    if what == "the field is empty" {
        return Some(
            "every field needs a number; fill it, or leave out its line or column".to_owned(),
        );
    }
    let shown = what.strip_prefix('`')?.strip_suffix("` is not a number")?;
    let file = quoted(&path.display().to_string());
    let mut words: Vec<&str> = shown.split_whitespace().collect();
    if shown.ends_with('…') {
        words.pop();
    }
    if shown.contains(' ') && words.iter().all(|word| word.parse::<f32>().is_ok()) {
        let recipe = format!("`tr -s ' ' , < {file} > numbers.csv`");
        return Some(format!("separate the fields by commas: {recipe}"));
    }
    let column: usize = place.rsplit_once("column ")?.1.parse().ok()?;
    let others = match column {
        1 => "2-".to_owned(),
        2 => "1,3-".to_owned(),
        n => format!("1-{},{}-", n - 1, n + 1),
    };
    Some(format!(
        "points are numbers; leave that column out: `cut{} -f{others} {file} > numbers.csv`",
        separator(path)
    ))
}

/// Returns the option of `cut` for the byte that separates the fields of a file: the one that [`Points::open`] finds.
///
/// [`Points::open`]: tercet_host::points::Points::open
fn separator(path: &Path) -> &'static str {
    let Ok(file) = std::fs::File::open(path) else {
        return " -d,";
    };
    let lines = io::BufRead::lines(io::BufReader::new(file));
    let first = lines
        .map_while(Result::ok)
        .find(|line| !line.trim().is_empty());
    match first.unwrap_or_default() {
        line if line.contains('\t') => "",
        line if line.contains(';') => " -d';'",
        _ => " -d,",
    }
}

/// Quotes a name for the shell if it needs that.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    if name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
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
