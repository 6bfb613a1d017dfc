//! The user's messages: the one message of `-p`, or the lines of standard input.

use std::io::{self, BufRead, IsTerminal, Write};

use tercet_host::Error;

/// The source of messages.
#[derive(Debug)]
pub(super) enum Lines {
    /// The message of `-p`, until it is used.
    One(Option<String>),
    /// Each line that is not empty, after a prompt if someone types.
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

    /// True if someone types, and can send another message if one is refused.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Input { terminal: true, .. })
    }

    /// Returns the next message; `None` if there is none.
    pub(super) fn next(&mut self) -> Result<Option<String>, Error> {
        let (terminal, number) = match self {
            Self::One(prompt) => return Ok(prompt.take()),
            Self::Input { terminal, number } => (*terminal, number),
        };
        loop {
            if terminal {
                let mut stderr = io::stderr();
                // If nobody reads it, ignore the error.
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
