//! `cargo firmware BOARD PROGRAM` builds a program of `firmware`, runs it on a board that QEMU emulates, and shows its
//! log. It checks the program's promises: forbidden code, limits and, if requested, a committed output and committed
//! figures.
//!
//! The exit status is the program's. It is also 1 if a promise is broken, 124 if the time limit was reached, and 2 if
//! nothing could be run.

mod boards;
mod budget;
mod build;
mod figures;
mod image;
mod programs;
mod report;
mod run;
mod session;
mod snapshot;
mod suite;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use boards::Board;

/// Builds a firmware program, runs it on a board that QEMU emulates, and shows what it logs.
#[derive(Parser)]
#[command(
    name = "cargo firmware",
    bin_name = "cargo firmware",
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "The exit status is the program's own; it is also 1 if a promise is broken, 124 if the time limit is reached, and 2 if nothing could be run."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Other>,
    #[command(flatten)]
    run: Option<Run>,
}

#[derive(Subcommand)]
enum Other {
    /// Names the boards and the programs
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Prints the arguments of `cargo build`, one per line, for building with another compiler
    Arguments {
        /// See `list`
        board: String,
        /// See `list`
        program: String,
    },
    /// Builds the conformance suite for boards, for `tercet verify --firmware DIR`
    Images {
        /// Gets a folder per board
        dir: PathBuf,
        /// See `list`; without any, all whose targets are installed
        boards: Vec<String>,
    },
    /// Prints the file from which `tercet verify` learns how to run a board's images
    Describe {
        /// See `list`
        board: String,
    },
    /// Prints the committed figures of all boards as a table in Markdown
    Table,
    /// Decodes the log of an image from standard input, such as frames that a probe saved
    Decode {
        /// The image that logged them
        image: PathBuf,
    },
}

/// The program to run, and the checks of its result.
#[derive(clap::Args)]
struct Run {
    /// See `cargo firmware list`
    board: String,
    /// See `cargo firmware list`; with --image any other name, too, for an image without limits and committed figures
    program: String,
    /// An image that is already built; its ELF file
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Ends the program after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// Fails if the output differs from this file, not counting lines that begin with #
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Fails if a figure is more than 2 % above that in firmware/snapshots/BOARD.txt, if that is of the same compiler
    #[arg(long)]
    budget: bool,
    /// Renews the files that --snapshot and --budget would compare with; so does TERCET_OVERWRITE=1
    #[arg(long)]
    overwrite: bool,
    /// Prints one line of JSON when the program has ended
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match (arguments.command, arguments.run) {
        (Some(Other::List { json }), _) => list(json),
        (Some(Other::Arguments { board, program }), _) => print_arguments(&board, &program),
        (Some(Other::Images { dir, boards }), _) => {
            suite::images(firmware(), &dir, &boards, |line| eprintln!("{line}")).map(|()| 0)
        }
        (Some(Other::Describe { board }), _) => Board::read(firmware(), &board)
            .and_then(|board| suite::describe(firmware(), &board))
            .map(|json| {
                print!("{json}");
                0
            }),
        (Some(Other::Table), _) => report::table(firmware()).map(|table| {
            print!("{table}");
            0
        }),
        (Some(Other::Decode { image }), _) => decode(&image),
        (None, Some(run)) => session::session(
            firmware(),
            &session::Session {
                board: run.board,
                program: run.program,
                image: run.image,
                limit: Duration::from_secs(run.limit),
                snapshot: run.snapshot,
                budget: run.budget,
                overwrite: run.overwrite || std::env::var_os("TERCET_OVERWRITE").is_some(),
                json: run.json,
            },
        ),
        (None, None) => Err("a BOARD and a PROGRAM; cargo firmware list names them".to_owned()),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns the folder that this tool was built in.
fn firmware() -> &'static Path {
    let runner = Path::new(env!("CARGO_MANIFEST_DIR"));
    runner.parent().unwrap_or(runner)
}

fn list(json: bool) -> Result<u8, String> {
    let boards = Board::all(firmware())?;
    let programs = programs::all(firmware())?;
    if json {
        println!("{}", report::list_json(&boards, &programs));
    } else {
        print!("{}", report::list(&boards, &programs));
    }
    Ok(0)
}

fn decode(image: &Path) -> Result<u8, String> {
    let bytes = fs::read(image).map_err(|error| format!("{}: {error}", image.display()))?;
    let mut input = std::io::stdin().lock();
    let mut buffer = [0; 4096];
    run::Decoder::new(&bytes)?.lines(
        || match input.read(&mut buffer) {
            Ok(length @ 1..) => Some(buffer[..length].to_vec()),
            _ => None,
        },
        |line| println!("{line}"),
    )?;
    Ok(0)
}

fn print_arguments(board: &str, program: &str) -> Result<u8, String> {
    let board = Board::read(firmware(), board)?;
    let program = programs::find(firmware(), program)?;
    for argument in build::arguments(firmware(), &board, &program) {
        println!("{}", argument.display());
    }
    Ok(0)
}
