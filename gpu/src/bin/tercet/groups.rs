//! The subcommands of `tercet --help` in groups.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use crate::Cli;

/// The heading and the subcommands of each group.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Files of weights",
        &["quantize", "dequantize", "inspect", "compare", "calibrate"],
    ),
    (
        "Language models",
        &[
            "import",
            "prune",
            "generate",
            "chat",
            "perplexity",
            "tokenize",
            "train",
        ],
    ),
    (
        "Points and vectors",
        &["kmeans", "assign", "elbow", "search"],
    ),
    ("Microcontrollers", &["network"]),
    ("This machine", &["info", "bench", "tune", "verify"]),
    ("More", &["demo", "completions", "help"]),
];

/// The command line, whose help lists the subcommands by group.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    // Adds `help`.
    command.build();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (heading, names) in GROUPS {
        let _ = writeln!(template, "{heading}:");
        for &name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {name:<12} {about}");
        }
        template.push('\n');
    }
    template += "Options:\n{options}{after-help}";
    Cli::command().help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_is_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let mut names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, names);
    }
}
