//! What can go wrong with files and tensors, told in one line.

use std::io;
use std::path::{Path, PathBuf};

/// A failure, naming the file, and the tensor and the place in it where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to open, read, write or rename a file.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "open", "map", "write", …
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// Neither safetensors, npy nor GGUF.
    #[error("{}: not a safetensors, npy or GGUF file ({reason})", .path.display())]
    UnknownFile {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: &'static str,
    },
    /// A file breaks the rules of its own format.
    #[error("{}: bad {format} file: {reason}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The format it claims.
        format: &'static str,
        /// The rule it breaks, with the offset or the tensor where there is one.
        reason: String,
    },
    /// A tensor cannot be read, quantized or written as asked.
    #[error("{}: tensor `{tensor}`: {reason}", .path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Why; an index counts the tensor's values in row-major order.
        reason: String,
    },
    /// No tensor has this name.
    #[error("{}: no tensor named `{tensor}`{}", .path.display(), near(.close))]
    NoSuchTensor {
        /// The file.
        path: PathBuf,
        /// The name looked for.
        tensor: String,
        /// The names of the model that come closest, the closest first; at most three.
        close: Vec<String>,
    },
    /// Two files do not hold the same tensors.
    #[error("{} and {}: {reason}", .left.display(), .right.display())]
    Differ {
        /// One file.
        left: PathBuf,
        /// The other.
        right: PathBuf,
        /// The tensor and the difference in name or shape.
        reason: String,
    },
    /// The output is there already.
    #[error("{}: exists already", .path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// Input and output are one file, perhaps under two names.
    #[error("{}: output and input are the same file", .path.display())]
    OutputIsInput {
        /// The output as it was named.
        path: PathBuf,
    },
    /// The output's format cannot hold what was asked for.
    #[error("{}: {reason}", .path.display())]
    Unsupported {
        /// The output, or the input that rules the conversion out.
        path: PathBuf,
        /// What does not fit, and what would.
        reason: String,
    },
    /// A model's run takes more memory than there is left. Nothing was begun.
    #[error(
        "{}: a run takes {} bytes of memory, {cache} of cache and {steps} of steps, and {available} are left",
        .path.display(), .cache.saturating_add(*.steps)
    )]
    Memory {
        /// The model's file.
        path: PathBuf,
        /// Bytes of keys and values.
        cache: usize,
        /// Bytes of steps.
        steps: usize,
        /// Bytes that the system says are left.
        available: u64,
    },
    /// The engine that was to do the work failed; files and options have no part in it.
    #[error("{engine}: {source}")]
    Engine {
        /// Its name.
        engine: String,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The options contradict each other.
    #[error("{reason}")]
    Options {
        /// Which, and why.
        reason: String,
    },
}

/// The end of a message that offers other names.
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
