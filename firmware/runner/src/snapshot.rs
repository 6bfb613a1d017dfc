//! Compares a program's output with a committed file.
//!
//! Lines that begin with `#` are notes and figures of one board, and are ignored.

use std::fs;
use std::path::Path;

use similar::TextDiff;

/// Compares lines with a committed file.
///
/// # Errors
/// The file cannot be read; or the lines differ, and the error is a unified diff from the file to the lines.
pub fn compare(file: &Path, lines: &[String]) -> Result<(), String> {
    let committed =
        fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    difference(
        &file.display().to_string(),
        &text(committed.lines()),
        &text(lines),
    )
}

/// Replaces a committed file with lines.
///
/// # Errors
/// The file cannot be written.
pub fn overwrite(file: &Path, lines: &[String]) -> Result<(), String> {
    fs::write(file, text(lines)).map_err(|error| format!("{}: {error}", file.display()))
}

fn text<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> String {
    lines
        .into_iter()
        .filter(|line| !line.as_ref().starts_with('#'))
        .map(|line| format!("{}\n", line.as_ref()))
        .collect()
}

fn difference(name: &str, committed: &str, now: &str) -> Result<(), String> {
    if committed == now {
        return Ok(());
    }
    let diff = TextDiff::from_lines(committed, now);
    let diff = diff.unified_diff().header(name, "now").to_string();
    Err(diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_not_compared() {
        let committed = text("# of an386\nwindow 1\n".lines());
        assert_eq!(
            difference("file", &committed, &text(["window 1", "# stack 9"])),
            Ok(())
        );
    }

    #[test]
    fn a_difference_shows_both_lines_and_those_around() {
        let now = ["window 1", "window 7", "window 3"];
        assert_eq!(
            difference("file", "window 1\nwindow 2\nwindow 3\n", &text(now)),
            Err(
                "--- file\n+++ now\n@@ -1,3 +1,3 @@\n window 1\n-window 2\n+window 7\n window 3\n"
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_is_overwritten_compares_equal() {
        let file = std::env::temp_dir().join(format!("tercet-snapshot-{}", std::process::id()));
        let lines = ["# figures", "window 1"].map(str::to_owned);
        overwrite(&file, &lines).expect("written");
        assert_eq!(compare(&file, &lines), Ok(()));
        assert!(compare(&file, &["window 2".to_owned()]).is_err());
        fs::remove_file(&file).expect("removed");
        assert!(compare(&file, &lines).is_err());
    }
}
