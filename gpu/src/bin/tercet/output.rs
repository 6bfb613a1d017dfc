//! Writes to standard output, completely and without panics.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a text.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes bytes unchanged.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Writes a report as JSON, indented, with a newline at its end. Numbers that JSON lacks (infinities, NaN) are `null`.
pub(crate) fn json(report: &impl Serialize) -> Result<(), Failure> {
    let mut json = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::new(format_args!("cannot write the report as JSON: {error}")))?;
    json.push('\n');
    text(&json)
}

/// Writes a report as JSON on one line, as one of many.
pub(crate) fn json_line(report: &impl Serialize) -> Result<(), Failure> {
    let mut json = serde_json::to_string(report)
        .map_err(|error| Failure::new(format_args!("cannot write the report as JSON: {error}")))?;
    json.push('\n');
    text(&json)
}
