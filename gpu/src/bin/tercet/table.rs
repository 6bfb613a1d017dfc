//! Text tables: columns are padded to their widest cell, with one line per row; names are shortened for a terminal.

use std::io::{self, IsTerminal};

use crate::format::printable;

/// Minimum length of a shortened name.
const SHORTEST: usize = 16;

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table that is filled row by row and then printed as a whole.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns an empty table with a head and an alignment for each column.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            heads: columns.iter().map(|(head, _)| printable(head)).collect(),
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty, cells past the last column are dropped.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let mut row: Vec<String> = cells
            .into_iter()
            .map(|cell| printable(&cell.into()))
            .collect();
        row.resize(self.heads.len(), String::new());
        self.rows.push(row);
    }

    /// Returns the table as lines, each ending in a newline and without trailing blanks.
    ///
    /// If standard output is a terminal, the first column is shortened as needed to fit it; a pipe or a file gets every
    /// full name.
    pub(crate) fn render(&self) -> String {
        let terminal = io::stdout().is_terminal();
        let size = terminal.then(terminal_size::terminal_size).flatten();
        self.lines(size.map_or(usize::MAX, |(width, _)| usize::from(width.0)))
    }

    /// Returns the table in lines of at most `room` characters, if names of [`SHORTEST`] make that possible.
    fn lines(&self, room: usize) -> String {
        let lines = || std::iter::once(&self.heads).chain(&self.rows);
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|c| lines().map(|row| width(&row[c])).max().unwrap_or(0))
            .collect();
        let mut widths: Vec<usize> = widths;
        let all = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(first.saturating_sub(all.saturating_sub(room)).max(SHORTEST));
        }
        let mut text = String::new();
        for row in lines() {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                if c > 0 {
                    line.push_str("  ");
                }
                let cell = &shortened(cell, widths[c]);
                let blanks = " ".repeat(widths[c] - width(cell));
                match self.aligns[c] {
                    Align::Left => line.extend([cell.as_str(), &blanks]),
                    Align::Right => line.extend([&blanks, cell.as_str()]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Shortens a cell to at most `room` characters by removing its middle: names differ at both ends.
fn shortened(cell: &str, room: usize) -> String {
    let length = width(cell);
    if length <= room {
        return cell.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head = cell.chars().take(kept / 2);
    let tail = cell.chars().skip(length - kept.div_ceil(2));
    head.chain(['…']).chain(tail).collect()
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("bytes", Align::Right)]);
        table.row(["a", "1"]);
        table.row(["longer", "1234567"]);
        assert_eq!(
            table.render(),
            "name      bytes\na             1\nlonger  1234567\n"
        );
    }

    #[test]
    fn names_give_way_to_a_narrow_terminal() {
        let mut table = Table::new(&[("tensor", Align::Left), ("bytes", Align::Right)]);
        table.row(["model.layers.0.mlp.down_proj.weight", "1"]);
        table.row(["☃.bias", "12345"]);
        let whole = table.lines(usize::MAX);
        assert!(whole.contains("model.layers.0.mlp.down_proj.weight      1\n"));
        assert_eq!(table.lines(42), whole);
        assert_eq!(
            table.lines(27),
            "tensor                bytes\n\
             model.lay…roj.weight      1\n\
             ☃.bias                12345\n"
        );
        // Names stay readable, even if the lines then wrap.
        assert_eq!(table.lines(0), table.lines(23));
        assert!(table.lines(0).contains("model.l…j.weight      1\n"));
    }

    #[test]
    fn short_rows_and_control_characters_do_no_harm() {
        let mut table = Table::new(&[("name", Align::Left), ("note", Align::Left)]);
        table.row(["a\u{1b}[2Jb\n"]);
        assert_eq!(table.render(), "name     note\na\u{fffd}[2Jb\u{fffd}\n");
    }
}
