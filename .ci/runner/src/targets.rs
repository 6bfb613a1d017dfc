//! The targets beside the machine's own: `.ci/targets.txt`.

use std::fs;
use std::path::Path;

/// A target and what is done there: a line of the list.
#[derive(Debug, PartialEq)]
pub struct Target {
    /// As compilers call it.
    pub name: String,
    /// `bare`, `desktop` or `checked`: see the list's head.
    pub kind: String,
}

/// The list in a file.
///
/// # Errors
/// The file cannot be read, or a line is not a name and a kind.
pub fn read(file: &Path) -> Result<Vec<Target>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(&text).map_err(|line| format!("{}: not a target and its kind: {line}", file.display()))
}

fn parse(text: &str) -> Result<Vec<Target>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let target = |line: &str| match *line.split_whitespace().collect::<Vec<_>>() {
        [name, kind @ ("bare" | "desktop" | "checked")] => Ok(Target {
            name: name.to_owned(),
            kind: kind.to_owned(),
        }),
        _ => Err(line.to_owned()),
    };
    lines.map(target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_target_and_its_kind() {
        let targets = parse("# head\na bare\nb checked\n").expect("two targets");
        let found: Vec<_> = targets.iter().map(|t| (&*t.name, &*t.kind)).collect();
        assert_eq!(found, [("a", "bare"), ("b", "checked")]);
    }

    #[test]
    fn another_kind_is_refused_with_its_line() {
        assert_eq!(parse("a bare\nb bear"), Err("b bear".to_owned()));
        assert_eq!(parse("a"), Err("a".to_owned()));
    }
}
