//! Compares a program's figures with the committed ones of the board.

use std::fs;
use std::path::{Path, PathBuf};

use crate::figures::{Comparison, Figures, Table, compare};

/// Relation of figures to the committed table.
#[derive(Debug)]
pub enum Standing {
    /// Compared.
    Compared(Comparison),
    /// The committed table is of this other compiler, so a comparison would be meaningless.
    OtherCompiler(String),
}

/// Returns the path of a board's committed table.
pub fn file(firmware: &Path, board: &str) -> PathBuf {
    firmware.join("snapshots").join(format!("{board}.txt"))
}

/// Compares figures with the committed table.
///
/// # Errors
/// The table cannot be read, or lacks the program.
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

/// Renews a program's lines of the committed table. If the table is of another compiler, starts a new one without the
/// other programs, and returns their names.
///
/// # Errors
/// The table cannot be read or written.
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
        // After renewal with another compiler, programs that were not renewed are gone.
        assert_eq!(
            renew(&file, "pools", new, &figures(103)),
            Ok(vec!["digits".to_owned()])
        );
        let missing = check(&file, "digits", new, &figures(200)).expect_err("not there");
        assert!(missing.ends_with("no figures of digits"), "{missing}");
        fs::remove_file(&file).expect("removed");
    }
}
