//! Lists that are kept by hand and have to say what `.ci` does: the workflow's jobs and README.md's table of targets.

use std::fs;
use std::path::Path;

use crate::steps::{Step, named};
use crate::targets::Target;

const WORKFLOW: &str = ".github/workflows/ci.yml";
const README: &str = "README.md";
/// The first words of the table's head.
const TABLE: &str = "| target | run on |";

/// What is wrong, a line each.
///
/// # Errors
/// A file cannot be read.
pub fn check(root: &Path, steps: &[Step], targets: &[Target]) -> Result<Vec<String>, String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let mut wrong = workflow(&read(WORKFLOW)?, steps, targets);
    wrong.extend(readme(&read(README)?, steps, targets));
    Ok(wrong)
}

/// The workflow names steps behind `.ci/test`, in the `steps` of a matrix, or as left out.
fn workflow(text: &str, steps: &[Step], targets: &[Target]) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = line.trim_start_matches("- ");
        let list = (line.strip_prefix("run: .ci/test "))
            .or_else(|| line.strip_prefix("# Left out: "))
            .or_else(|| line.strip_prefix("steps: \"")?.strip_suffix('"'));
        words.extend(
            list.unwrap_or_default()
                .split_whitespace()
                .filter(|word| !word.starts_with('$') && *word != "matrix.steps" && *word != "}}"),
        );
    }
    let mut wrong = Vec::new();
    for word in &words {
        if !steps.iter().any(|step| named(step, word)) {
            wrong.push(format!("{WORKFLOW}: no step {word}"));
        }
    }
    for step in steps {
        if !words.iter().any(|word| named(step, word)) {
            wrong.push(format!(
                "{WORKFLOW}: does not run {}, nor say that it leaves it out",
                step.name
            ));
        }
    }
    for target in targets.iter().filter(|target| target.kind != "checked") {
        let there = |word: &str| word.trim_matches(['"', ',']) == target.name;
        if !text.split_whitespace().any(there) {
            wrong.push(format!("{WORKFLOW}: does not install {}", target.name));
        }
    }
    wrong
}

/// The table has a row for each target on which something runs, with the steps that print the digests there.
fn readme(text: &str, steps: &[Step], targets: &[Target]) -> Vec<String> {
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with(TABLE))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let cell = |row: &[&str], at: usize| row.get(at).unwrap_or(&"").replace('`', "");
    let mut wrong = Vec::new();
    for target in targets.iter().filter(|target| target.kind != "checked") {
        if !rows.iter().any(|row| cell(row, 1) == target.name) {
            wrong.push(format!("{README}: no row for {}", target.name));
        }
    }
    let prints = |step: &&Step| {
        ["conformance:", "board:"]
            .iter()
            .any(|kind| step.name.starts_with(kind))
    };
    let listed: Vec<String> = rows
        .iter()
        .flat_map(|row| {
            cell(row, 3)
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    for step in steps.iter().filter(prints) {
        if !listed.contains(&step.name) {
            wrong.push(format!("{README}: no row names {}", step.name));
        }
    }
    for name in &listed {
        if !steps.iter().any(|step| step.name == *name) {
            wrong.push(format!("{README}: no step {name}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps;

    fn lists() -> (Vec<Step>, Vec<Target>) {
        let targets = vec![Target {
            name: "big-endian".to_owned(),
            kind: "desktop".to_owned(),
        }];
        (steps::all(&[], &targets), targets)
    }

    #[test]
    fn a_step_that_the_workflow_forgets_is_found_and_one_that_is_not_there() {
        let (steps, targets) = lists();
        let names: Vec<&str> = steps
            .iter()
            .map(|step| &*step.name)
            .filter(|name| *name != "fmt")
            .collect();
        let text = format!(
            "targets: big-endian\n- run: .ci/test {} frmt",
            names.join(" ")
        );
        let wrong = workflow(&text, &steps, &targets);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].ends_with("no step frmt") && wrong[1].contains("does not run fmt,"));
        let left = "# Left out: fmt";
        let wrong = workflow(
            &format!("steps: \"{}\"\n{left}", names.join(" ")),
            &steps,
            &targets,
        );
        assert_eq!(wrong, [format!("{WORKFLOW}: does not install big-endian")]);
    }

    #[test]
    fn a_target_without_a_row_and_a_row_without_its_step_are_found() {
        let (steps, targets) = lists();
        let table = |row: &str| {
            let rows = "| `x86` | itself | `conformance:host` | 9 | – |";
            format!(
                "text\n\n{TABLE} steps | digests | flash |\n|---|---|---|---|---|\n{rows}\n{row}\n\nmore"
            )
        };
        let right = "| `big-endian` | QEMU | `conformance:big-endian` | 9 | – |";
        assert_eq!(
            readme(&table(right), &steps, &targets),
            Vec::<String>::new()
        );
        let wrong = readme(
            &table("| `big-endian` | QEMU | `conformance:big` | 9 | – |"),
            &steps,
            &targets,
        );
        assert_eq!(
            wrong,
            [
                "README.md: no row names conformance:big-endian",
                "README.md: no step conformance:big"
            ]
        );
        assert_eq!(readme(&table(""), &steps, &targets).len(), 2);
    }
}
