//! `tercet network`: integer networks, made from float models and run.

mod build;
mod run;

pub(crate) use run::digest;

use crate::failure::Failure;

/// Make an integer network that a microcontroller runs from flash, and run it here to the same bits
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(build::Arguments),
    Run(run::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::Run(arguments) => run::run(arguments),
    }
}
