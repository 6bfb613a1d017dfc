//! What `cargo firmware` starts: it looks for what a run needs, then has cargo build the tool and run it.
//!
//! The tool has dependencies that take minutes to compile the first time, and a firmware program takes more; this is there in a second.

mod arguments;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, io};

use arguments::{Request, request};
use tercet_firmware_runner::needs::Search;

/// The exit status where nothing could be run; the tool's too.
const NOTHING_RUN: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = look(&request(&arguments)).and_then(|()| go_on(&arguments));
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(NOTHING_RUN)
    })
}

/// The package of the tool.
fn runner() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Looks for what is needed.
fn look(request: &Request) -> Result<(), String> {
    let firmware = runner().parent().unwrap_or(runner());
    let boards = firmware.join("boards");
    let mut search = Search::new(firmware);
    match request {
        Request::Nothing => {}
        Request::Run { board, built } => {
            if let Some(board) = Board::read(&boards, board) {
                if !built {
                    search.target(&board.target, &board.config);
                }
                search.emulator(&board.emulator);
            }
        }
        Request::Images { boards: names } if names.is_empty() => {
            let names = names_in(&boards);
            let found = names.iter().filter_map(|name| Board::read(&boards, name));
            // The tool leaves out those that lack something.
            let mut any = false;
            for board in found {
                any |= search.target(&board.target, &board.config);
            }
            if any {
                return Ok(());
            }
        }
        Request::Images { boards: names } => {
            for board in names.iter().filter_map(|name| Board::read(&boards, name)) {
                search.target(&board.target, &board.config);
            }
        }
    }
    search.end()
}

/// What is read of a board's file here, where nothing that reads TOML is.
struct Board {
    target: String,
    emulator: String,
    config: PathBuf,
}

impl Board {
    /// Nothing where there is no such board, of which the tool will tell, or its file is written otherwise than those here.
    fn read(boards: &Path, name: &str) -> Option<Self> {
        let (name, other) = match name.split_once(':') {
            Some((name, target)) => (name, Some(target)),
            None => (name, None),
        };
        let config = boards.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&config).ok()?;
        let target = quoted_after(&text, "\ntarget = ")?;
        Some(Self {
            target: other.map_or(target, str::to_owned),
            emulator: quoted_after(&text, "\nrunner = ")?,
            config,
        })
    }
}

/// The first text in quotation marks after `key`.
fn quoted_after(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// The names of the boards, sorted.
fn names_in(boards: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(boards).into_iter().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Builds the tool where this was built, and runs it in place of this.
fn go_on(arguments: &[OsString]) -> Result<ExitCode, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command
        .args([
            "run",
            "--quiet",
            "--locked",
            "--bin",
            "firmware",
            "--manifest-path",
        ])
        .arg(runner().join("Cargo.toml"));
    // This lies in debug/ there.
    let this = env::current_exe().map_err(|error| format!("cargo firmware: {error}"))?;
    if let Some(target) = this.parent().and_then(Path::parent) {
        command.arg("--target-dir").arg(target);
    }
    command.arg("--").args(arguments);
    become_it(command).map_err(|error| format!("{}: {error}", cargo.display()))
}

/// Runs a command in place of this one, whose signals and exit status are then its.
#[cfg(unix)]
fn become_it(mut command: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs a command; its exit status, which is a byte.
#[cfg(not(unix))]
fn become_it(mut command: Command) -> io::Result<ExitCode> {
    let code = command.status()?.code();
    let byte = code.and_then(|code| u8::try_from(code).ok());
    Ok(byte.map_or(ExitCode::FAILURE, ExitCode::from))
}
