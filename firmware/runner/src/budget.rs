//! A program's figures beside those committed for the board.

use std::fs;
use std::path::{Path, PathBuf};

use crate::figures::{Comparison, Figures, Table, compare};

/// How figures stand to the committed table.
#[derive(Debug)]
pub enum Standing {
    /// Compared.
    Compared(Comparison),
    /// The committed table is of another compiler, this one, so growth would mean nothing.
    OtherCompiler(String),
}

/// The committed table of a board.
pub fn file(firmware: &Path, board: &str) -> PathBuf {
    firmware.join("snapshots").join(format!("{board}.txt"))
}

/// Compares with the committed table.
///
/// # Errors
/// It cannot be read, or lacks the program.
pub fn check(
    file: &Path,
    program: &str,
    compiler: &str,
    figures: &Figures,
) -> Result<Standing, String> {
    let table = read(file)?;
    if table.compiler != compiler {
        return Ok(Standing::OtherCompiler(table.compiler));
    }
    let committed = table
        .get(program)
        .ok_or_else(|| format!("{}: no figures of {program}", file.display()))?;
    Ok(Standing::Compared(compare(committed, figures)))
}

/// Renews a program's lines of the committed table. Where that is of another compiler, a new one is begun, without the other programs,
/// whose names are returned.
///
/// # Errors
/// It cannot be read or written.
pub fn renew(
    file: &Path,
    program: &str,
    compiler: &str,
    figures: &Figures,
) -> Result<Vec<String>, String> {
    let mut table = if file.exists() {
        read(file)?
    } else {
        Table::new(compiler)
    };
    let mut lost = Vec::new();
    if table.compiler != compiler {
        lost.extend(
            table
                .programs()
                .filter(|&name| name != program)
                .map(str::to_owned),
        );
        table = Table::new(compiler);
    }
    table.set(program, figures);
    fs::write(file, table.text()).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(lost)
}

fn read(file: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Table::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(flash: u64) -> Figures {
        let mut figures = Figures::default();
        figures.set("flash", flash);
        figures
    }

    #[test]
    fn a_table_is_of_one_compiler() {
        let file = std::env::temp_dir().join(format!("tercet-budget-{}.txt", std::process::id()));
        let (old, new) = ("rustc version 1.96.0", "rustc version 1.97.0");
        assert_eq!(renew(&file, "pools", old, &figures(100)), Ok(vec![]));
        assert_eq!(renew(&file, "digits", old, &figures(200)), Ok(vec![]));
        let compared = check(&file, "pools", old, &figures(103)).expect("a table");
        assert!(matches!(compared, Standing::Compared(comparison) if comparison.grown.len() == 1));
        let other = check(&file, "pools", new, &figures(103)).expect("a table");
        assert!(matches!(other, Standing::OtherCompiler(compiler) if compiler == old));
        // Renewed by another compiler, it loses what was not.
        assert_eq!(
            renew(&file, "pools", new, &figures(103)),
            Ok(vec!["digits".to_owned()])
        );
        let missing = check(&file, "digits", new, &figures(200)).expect_err("not there");
        assert!(missing.ends_with("no figures of digits"), "{missing}");
        fs::remove_file(&file).expect("removed");
    }
}
