//! Points as text: one point per line, its fields separated by one byte.

use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, Trim, WriterBuilder};

use super::{Points, ReadOptions, Values};
use crate::Error;
use crate::file::map::Map;
use crate::file::output::Output;

const FORMAT: &str = "csv";
/// Number of characters of a field that an error shows.
const SHOWN: usize = 24;
/// Number of lines that are collected before they are written.
const LINES: usize = 4096;

pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Points, Error> {
    let map = Map::open(path)?;
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let delimiter = options.delimiter.unwrap_or_else(|| guess(map.bytes()));
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        // Lines of different lengths are reported by line number below.
        .flexible(true)
        .trim(Trim::All)
        .from_reader(map.bytes());

    let mut values = Vec::new();
    let mut header = None;
    let mut columns = None;
    let mut rows = 0usize;
    let mut record = ByteRecord::new();
    loop {
        let more = reader.read_byte_record(&mut record);
        if !more.map_err(|e| bad(e.to_string()))? {
            break;
        }
        let line = record.position().map_or(0, |position| position.line());
        let expected = *columns.get_or_insert(record.len());
        if record.len() != expected {
            let found = record.len();
            return Err(bad(format!(
                "line {line} has {found} fields, but the first line has {expected}"
            )));
        }
        if rows == 0 && header.is_none() && record.iter().all(|field| number(field).is_none()) {
            let names = record
                .iter()
                .map(|field| String::from_utf8_lossy(field).into_owned());
            header = Some(names.collect::<Vec<_>>());
            continue;
        }
        for (column, field) in record.iter().enumerate() {
            let value = number(field).filter(|value| value.is_finite());
            let place = || format!("line {line}, column {}", column + 1);
            values.push(value.ok_or_else(|| bad(format!("{}: {}", place(), reason(field))))?);
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(bad(match header {
            None => "it is empty".to_owned(),
            Some(_) => "it has no line of numbers".to_owned(),
        }));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Points {
        path: path.to_path_buf(),
        name: name.into_owned(),
        shape: vec![rows, columns.unwrap_or(1)],
        values: Values::F32(values),
        header,
        delimiter: Some(delimiter),
    })
}

/// The header and the separator of a file with one column.
pub(super) const ONE: (Option<&[String]>, u8) = (None, b',');

/// Writes the header, if given, and a line per row, with the separator between the fields; returns the file's size in
/// bytes. `text` gives the text of a value.
pub(super) fn write<'a, T: 'a>(
    mut output: Output,
    (header, delimiter): (Option<&[String]>, u8),
    mut rows: impl Iterator<Item = &'a [T]>,
    text: impl Fn(&T) -> String,
) -> Result<u64, Error> {
    let begin = || {
        WriterBuilder::new()
            .delimiter(delimiter)
            .from_writer(Vec::new())
    };
    if let Some(names) = header {
        let mut lines = begin();
        lines.write_record(names).map_err(unwritten)?;
        output.write(&lines.into_inner().map_err(unwritten)?)?;
    }
    loop {
        let mut lines = begin();
        for row in rows.by_ref().take(LINES) {
            lines
                .write_record(row.iter().map(&text))
                .map_err(unwritten)?;
        }
        let lines = lines.into_inner().map_err(unwritten)?;
        if lines.is_empty() {
            return output.finish();
        }
        output.write(&lines)?;
    }
}

/// Returns the error of a line that could not be composed in memory.
fn unwritten(error: impl std::fmt::Display) -> Error {
    Error::options(format!("a CSV line cannot be made: {error}"))
}

/// Returns the shortest decimal number that reads back to the same `f32`, with an exponent if it is very large or
/// small.
pub(super) fn float(value: &f32) -> String {
    match value.abs() {
        0.0 | 1e-5..1e9 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// Returns tab if the first line that is not blank has one, else semicolon if it has one, else comma.
fn guess(bytes: &[u8]) -> u8 {
    let mut lines = bytes.split(|&byte| byte == b'\n' || byte == b'\r');
    let first = lines
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default();
    let found = [b'\t', b';']
        .into_iter()
        .find(|delimiter| first.contains(delimiter));
    found.unwrap_or(b',')
}

fn number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Returns the reason why a field is refused.
fn reason(field: &[u8]) -> String {
    if field.is_empty() {
        return "the field is empty".to_owned();
    }
    let text = String::from_utf8_lossy(field);
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    match number(field) {
        Some(_) => format!("`{shown}` is not a finite f32"),
        None => format!("`{shown}` is not a number"),
    }
}
