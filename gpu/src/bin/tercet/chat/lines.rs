//! What the user says: the one message of `-p`, or the lines of standard input.

use std::io::{self, BufRead, IsTerminal, Write};

use tercet_host::Error;

/// Where messages come from.
#[derive(Debug)]
pub(super) enum Lines {
    /// The one of `-p`, until it is given.
    One(Option<String>),
    /// Each line that is not empty; with a sign before it where someone types.
    Input { terminal: bool, number: usize },
}

impl Lines {
    pub(super) fn new(prompt: Option<String>) -> Self {
        match prompt {
            Some(prompt) => Self::One(Some(prompt)),
            None => Self::Input {
                terminal: io::stdin().is_terminal(),
                number: 0,
            },
        }
    }

    /// Whether someone types, and may say something else where a message is refused.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Input { terminal: true, .. })
    }

    /// The next message; `None` where there is none.
    pub(super) fn next(&mut self) -> Result<Option<String>, Error> {
        let (terminal, number) = match self {
            Self::One(prompt) => return Ok(prompt.take()),
            Self::Input { terminal, number } => (*terminal, number),
        };
        loop {
            if terminal {
                let mut stderr = io::stderr();
                // Where nobody reads it, there is nobody to ask.
                let _ = write!(stderr, "> ").and_then(|()| stderr.flush());
            }
            let mut line = Vec::new();
            let read = io::stdin().lock().read_until(b'\n', &mut line);
            let refuse = |source| Error::Io {
                path: "standard input".into(),
                action: "read",
                source,
            };
            if read.map_err(refuse)? == 0 {
                if terminal {
                    eprintln!();
                }
                return Ok(None);
            }
            *number += 1;
            let line = String::from_utf8(line).map_err(|_| {
                let reason = format!("line {number} is not UTF-8");
                refuse(io::Error::new(io::ErrorKind::InvalidData, reason))
            })?;
            let line = line.strip_suffix('\n').unwrap_or(&line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            if !line.trim().is_empty() {
                return Ok(Some(line.to_owned()));
            }
        }
    }
}
