//! The texts of a run.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Texts to train on, and the held-out text.
#[derive(Debug)]
pub(super) struct Texts {
    /// One after another.
    pub(super) train: Vec<Vec<u8>>,
    /// The end of the last texts, together.
    pub(super) held_out: Vec<u8>,
}

impl Texts {
    /// Reads all texts, and holds out the last share.
    pub(super) fn read(paths: &[PathBuf], hold: f64) -> Result<Self, Failure> {
        let mut train = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                let mut text = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut text);
                read.map_err(|error| {
                    Failure::new(format_args!("cannot read standard input: {error}"))
                })?;
                train.push(text);
            } else if path.is_dir() {
                let mut files = Vec::new();
                below(path, &mut files)?;
                files.sort_by(|a, b| bytes(a).cmp(bytes(b)));
                for file in files {
                    train.push(text(&file)?);
                }
            } else {
                train.push(text(path)?);
            }
        }
        train.retain(|text| !text.is_empty());
        let all: usize = train.iter().map(Vec::len).sum();
        if all == 0 {
            return Err(Failure::new("the texts are empty; give files with text"));
        }
        let mut left = ((all as f64 * hold) as usize).max(1);
        let mut held_out: Vec<Vec<u8>> = Vec::new();
        while left > 0 {
            let Some(mut text) = train.pop() else { break };
            let mut cut = text.len().saturating_sub(left);
            // Not within a character.
            while cut > 0 && text[cut] & 0xC0 == 0x80 {
                cut -= 1;
            }
            held_out.push(text.split_off(cut));
            left = left.saturating_sub(held_out.last().map_or(0, Vec::len));
            if !text.is_empty() {
                train.push(text);
            }
        }
        held_out.reverse();
        Ok(Self {
            train,
            held_out: held_out.concat(),
        })
    }
}

fn text(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::io(path, "read", &error))
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Collects all files in a folder and its subfolders.
fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::io(folder, "read", &error);
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = entry.path();
        if entry.file_type().map_err(fail)?.is_dir() {
            below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
