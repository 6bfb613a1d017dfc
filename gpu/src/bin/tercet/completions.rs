//! `tercet completions`: prints command-line completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  tercet completions bash > ~/.local/share/bash-completion/completions/tercet
  tercet completions zsh > ~/.zfunc/_tercet
  tercet completions fish > ~/.config/fish/completions/tercet.fish";

/// Print command-line completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut crate::Cli::command(),
        "tercet",
        &mut script,
    );
    output::text(&String::from_utf8_lossy(&script))
}
