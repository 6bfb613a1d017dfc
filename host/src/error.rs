//! Errors of work on files and tensors, each with a message of one line.

use std::io;
use std::path::{Path, PathBuf};

/// An error, with the file and, if there is one, the tensor and the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to open, read, write or rename a file.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action: "open", "map", "write", …
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not safetensors, npy or GGUF.
    #[error("{}: not a safetensors, npy or GGUF file ({reason})", .path.display())]
    UnknownFile {
        /// The file.
        path: PathBuf,
        /// The content that was found instead.
        reason: &'static str,
    },
    /// A file breaks the rules of its own format.
    #[error("{}: bad {format} file: {reason}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The format that the file claims.
        format: &'static str,
        /// The rule that it breaks, with the offset or the tensor if there is one.
        reason: String,
    },
    /// A tensor cannot be read, quantized or written as requested.
    #[error("{}: tensor `{tensor}`: {reason}", .path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The reason; an index counts the tensor's values in row-major order.
        reason: String,
    },
    /// No tensor has this name.
    #[error("{}: no tensor named `{tensor}`{}", .path.display(), near(.close))]
    NoSuchTensor {
        /// The file.
        path: PathBuf,
        /// The requested name.
        tensor: String,
        /// The most similar names of the model, the most similar first; at most three.
        close: Vec<String>,
    },
    /// Two files do not contain the same tensors.
    #[error("{} and {}: {reason}", .left.display(), .right.display())]
    Differ {
        /// One file.
        left: PathBuf,
        /// The other.
        right: PathBuf,
        /// The tensor and the difference in name or shape.
        reason: String,
    },
    /// The output exists already.
    #[error("{}: exists already", .path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// Input and output are the same file, perhaps under two names.
    #[error("{}: output and input are the same file", .path.display())]
    OutputIsInput {
        /// The output's path as given.
        path: PathBuf,
    },
    /// The output's format cannot store the requested content.
    #[error("{}: {reason}", .path.display())]
    Unsupported {
        /// The output, or the input that makes the conversion impossible.
        path: PathBuf,
        /// The content that does not fit, and an alternative that would.
        reason: String,
    },
    /// A model's run needs more memory than is available. It did not start.
    #[error(
        "{}: a run needs {} bytes of memory, {cache} of cache and {steps} of steps, but only {available} are left",
        .path.display(), .cache.saturating_add(*.steps)
    )]
    Memory {
        /// The model's file.
        path: PathBuf,
        /// Bytes of keys and values.
        cache: usize,
        /// Bytes of steps.
        steps: usize,
        /// Bytes that the system reports as available.
        available: u64,
    },
    /// The engine that the work was given to failed. Files and options are not the cause.
    #[error("{engine}: {source}")]
    Engine {
        /// Its name.
        engine: String,
        /// The engine's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The options contradict each other.
    #[error("{reason}")]
    Options {
        /// The contradicting options, and the reason.
        reason: String,
    },
}

/// Returns the end of a message that suggests other names.
fn near(close: &[String]) -> String {
    if close.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
    format!("; the closest are {}", quoted.join(", "))
}

impl Error {
    /// Makes the error of a failed system call on `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }

    pub(crate) fn bad(path: &Path, format: &'static str, reason: impl ToString) -> Self {
        Self::BadFile {
            path: path.to_path_buf(),
            format,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn tensor(path: &Path, tensor: &str, reason: impl ToString) -> Self {
        Self::Tensor {
            path: path.to_path_buf(),
            tensor: tensor.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn not_finite(path: &Path, tensor: &str, index: usize) -> Self {
        Self::tensor(path, tensor, format!("value {index} is not finite"))
    }

    pub(crate) fn unsupported(path: &Path, reason: impl ToString) -> Self {
        Self::Unsupported {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn options(reason: impl ToString) -> Self {
        Self::Options {
            reason: reason.to_string(),
        }
    }
}
