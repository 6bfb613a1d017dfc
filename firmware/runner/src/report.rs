//! The output besides the program's own lines.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::boards::Board;
use crate::budget;
use crate::figures::{Figures, Table};
use crate::programs::Program;
use crate::run::{Ending, Run};

/// The verdict on a run.
#[derive(Debug)]
pub struct Report {
    board: String,
    program: String,
    compiler: String,
    lines: Vec<String>,
    ending: Ending,
    figures: Figures,
    broken: Vec<String>,
    notes: Vec<String>,
}

impl Report {
    /// Makes a verdict without objections to the run.
    pub fn new(
        board: &Board,
        program: &Program,
        compiler: &str,
        run: &Run,
        figures: &Figures,
    ) -> Self {
        Self {
            board: board.name.clone(),
            program: program.name.clone(),
            compiler: compiler.to_owned(),
            lines: run.lines.clone(),
            ending: run.ending,
            figures: figures.clone(),
            broken: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds broken promises.
    pub fn broken(&mut self, lines: &[String]) {
        self.broken.extend_from_slice(lines);
    }

    /// Adds a note.
    pub fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// Returns true if a promise is broken.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Returns the text for people: figures, notes, broken promises, and the program's end if it did not succeed.
    pub fn text(&self) -> String {
        let head = format!("{} {}", self.board, self.program);
        let figures: Vec<String> = self
            .figures
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let mut text = format!("{head}: {}\n", figures.join(", "));
        for line in &self.notes {
            let _ = writeln!(text, "{head}: {line}");
        }
        for line in &self.broken {
            let _ = writeln!(text, "error: {head}: {line}");
        }
        let _ = match self.ending {
            Ending::Status(0) => Ok(()),
            Ending::Status(status) => writeln!(text, "error: {head}: exit status {status}"),
            Ending::TimeLimit(limit) => writeln!(
                text,
                "error: {head}: did not end within {} s; --limit allows more",
                limit.as_secs_f32()
            ),
        };
        text
    }

    /// Returns one line of JSON for machines.
    pub fn json(&self) -> String {
        let figures: Map<String, Value> = self
            .figures
            .iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let status = match self.ending {
            Ending::Status(status) => Some(status),
            Ending::TimeLimit(_) => None,
        };
        json!({
            "board": self.board,
            "program": self.program,
            "compiler": self.compiler,
            "status": status,
            "lines": self.lines,
            "figures": figures,
            "notes": self.notes,
            "broken": self.broken,
        })
        .to_string()
    }
}

/// Returns the boards and the programs, for people.
pub fn list(boards: &[Board], programs: &[Program]) -> String {
    let mut text = "boards\n".to_owned();
    for board in boards {
        let _ = writeln!(
            text,
            "  {:<20} {:<30} {}",
            board.name, board.target, board.about
        );
    }
    text += "programs\n";
    for program in programs {
        let _ = writeln!(text, "  {:<20} {}", program.name, program.rules.about);
    }
    text
}

/// Returns the boards and the programs, for machines.
pub fn list_json(boards: &[Board], programs: &[Program]) -> String {
    let boards: Vec<Value> = boards
        .iter()
        .map(|board| {
            json!({
                "name": board.name,
                "about": board.about,
                "target": board.target,
                "features": board.features,
                "runner": board.runner,
            })
        })
        .collect();
    let programs: Vec<Value> = programs
        .iter()
        .map(|program| {
            json!({
                "name": program.name,
                "about": program.rules.about,
                "features": program.features,
                "counts": program.rules.counts,
                "limits": program.rules.limits,
            })
        })
        .collect();
    json!({ "boards": boards, "programs": programs }).to_string()
}

/// Returns the committed figures of all boards in Markdown: a line for each program and board.
///
/// # Errors
/// A table cannot be read; boards without a table are skipped.
pub fn table(firmware: &Path) -> Result<String, String> {
    let columns = ["flash", "flash.named", "ram", "stack", "ram.total"];
    let mut text =
        "| program | board | flash | of it data | RAM, statics | stack | RAM |\n".to_owned();
    text += "|---|---|---|---|---|---|---|\n";
    let mut tables = Vec::new();
    for board in Board::all(firmware)? {
        let file = budget::file(firmware, &board.name);
        if let Ok(text) = std::fs::read_to_string(&file) {
            let table =
                Table::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
            tables.push((board.name, table));
        }
    }
    let mut programs: Vec<&str> = tables
        .iter()
        .flat_map(|(_, table)| table.programs())
        .collect();
    programs.sort_unstable();
    programs.dedup();
    for program in programs {
        for (board, table) in &tables {
            let Some(figures) = table.get(program) else {
                continue;
            };
            let _ = write!(text, "| `{program}` | `{board}` |");
            for column in columns {
                let value = figures.get(column);
                let value = value.map(|value| value.to_string()).unwrap_or_default();
                let _ = write!(text, " {value} |");
            }
            text.push('\n');
        }
    }
    Ok(text)
}
