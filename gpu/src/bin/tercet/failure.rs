//! A failed command, described in one line for people.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use tercet_host::simd::BackendError;

use crate::advice;

/// Why a command failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Failed,
    Usage,
    ReaderLeft,
    Interrupted,
}

impl Failure {
    /// Returns a failure with this message. Line breaks and other control characters, which file names may contain, are
    /// escaped.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let line = message
            .chars()
            .fold(String::with_capacity(message.len()), |mut line, c| {
                if c.is_control() {
                    line.extend(c.escape_default())
                } else {
                    line.push(c)
                }
                line
            });
        Self {
            message: line,
            kind: Kind::Failed,
        }
    }

    /// Returns the failure of a system call on a file.
    pub(crate) fn io(path: &Path, action: &str, error: &io::Error) -> Self {
        let line = format!("{}: cannot {action}: {error}", path.display());
        Self::advised(line, advice::missing(path, error))
    }

    /// Returns a failure and, in parentheses, what to do about it.
    fn advised(line: String, advice: Option<String>) -> Self {
        match advice {
            Some(advice) => Self::new(format_args!("{line} ({advice})")),
            None => Self::new(line),
        }
    }

    /// Returns the failure of a write to standard output. A reader that stopped early (`tercet … | head`) is no
    /// failure.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe {
            Kind::ReaderLeft
        } else {
            Kind::Failed
        };
        Self {
            kind,
            ..Self::new(format_args!("cannot write to standard output: {error}"))
        }
    }

    /// Returns the failure of contradictory options that only the running command can detect.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self {
            kind: Kind::Usage,
            ..Self::new(message)
        }
    }

    /// Returns the failure of an interrupt that was handled.
    pub(crate) fn interrupted(message: impl fmt::Display) -> Self {
        Self {
            kind: Kind::Interrupted,
            ..Self::new(message)
        }
    }

    /// Writes the failure to stderr, if anybody reads it, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        if self.kind != Kind::ReaderLeft {
            eprintln!("error: {self}");
        }
        match self.kind {
            Kind::Failed => ExitCode::FAILURE,
            Kind::Usage => ExitCode::from(2),
            Kind::ReaderLeft => ExitCode::SUCCESS,
            Kind::Interrupted => ExitCode::from(130),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::usage(error)
    }
}

impl From<tercet_host::Error> for Failure {
    fn from(error: tercet_host::Error) -> Self {
        match error {
            tercet_host::Error::Options { .. } => Self::usage(error),
            error => {
                let advice = advice::advice(&error);
                Self::advised(error.to_string(), advice)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        assert_eq!(
            Failure::new("a\nb\u{1b}[31mc").to_string(),
            "a\\nb\\u{1b}[31mc"
        );
    }
}
