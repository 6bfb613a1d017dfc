//! The emulated boards: `firmware/boards/BOARD.toml`, which `cargo firmware` and cargo read too.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

/// A board, and what is built for it.
#[derive(Debug, PartialEq)]
pub struct Board {
    /// Its file's name.
    pub name: String,
    /// What its programs are compiled for.
    pub target: String,
    /// Further targets that run on it.
    pub others: Vec<String>,
}

/// The boards of a folder, by name.
///
/// # Errors
/// The folder or a file cannot be read, or a file names no target.
pub fn read(folder: &Path) -> Result<Vec<Board>, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let entries = fs::read_dir(folder).map_err(|error| wrong(folder, &error))?;
    let mut boards = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| wrong(folder, &error))?.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path).map_err(|error| wrong(&path, &error))?;
        boards.push(parse(&name, &text).map_err(|error| wrong(&path, &error))?);
    }
    boards.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(boards)
}

fn parse(name: &str, text: &str) -> Result<Board, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    let word = |room: &str, key: &str| {
        let value = table.get(room).and_then(|room| room.get(key));
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let others = word("env", "TERCET_TARGETS").unwrap_or_default();
    Ok(Board {
        name: name.to_owned(),
        target: word("build", "target").ok_or("no target under [build]")?,
        others: others.split_whitespace().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_has_its_target_and_others() {
        let text = "[build]\ntarget = 'a-none'\n[env]\nTERCET_TARGETS = 'b-none c-none'";
        let board = Board {
            name: "x".to_owned(),
            target: "a-none".to_owned(),
            others: vec!["b-none".to_owned(), "c-none".to_owned()],
        };
        assert_eq!(parse("x", text), Ok(board));
    }

    #[test]
    fn a_board_without_a_target_is_refused() {
        assert_eq!(
            parse("x", "[env]").map(|_| ()),
            Err("no target under [build]".to_owned())
        );
    }
}
