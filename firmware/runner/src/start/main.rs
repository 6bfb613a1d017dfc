//! The program that `cargo firmware` starts. It looks for the needs of a run, then lets cargo build the tool and run
//! it.
//!
//! The tool's dependencies take minutes to compile the first time, and a firmware program takes longer; this one is
//! ready in a second.

mod arguments;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, io};

use arguments::{Request, request};
use tercet_firmware_runner::needs::Search;

/// The exit status if nothing could be run; the same as the tool's.
const NOTHING_RUN: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = look(&request(&arguments)).and_then(|()| go_on(&arguments));
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(NOTHING_RUN)
    })
}

/// Returns the package of the tool.
fn runner() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Looks for the needs of a request.
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
            // The tool skips boards that lack something.
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

/// The facts of a board's file that are read here, without a TOML reader.
struct Board {
    target: String,
    emulator: String,
    config: PathBuf,
}

impl Board {
    /// Returns `None` if there is no such board, which the tool will report, or if its file has an unexpected form.
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

/// Returns the first text in quotation marks after `key`.
fn quoted_after(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// Returns the names of the boards, sorted.
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

/// Builds the tool in the folder that this program was built in, and runs it in place of this program.
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
    // This program lies in debug/ of that folder.
    let this = env::current_exe().map_err(|error| format!("cargo firmware: {error}"))?;
    if let Some(target) = this.parent().and_then(Path::parent) {
        command.arg("--target-dir").arg(target);
    }
    command.arg("--").args(arguments);
    become_it(command).map_err(|error| format!("{}: {error}", cargo.display()))
}

/// Runs a command in place of this one. Signals and exit status are then those of the command.
#[cfg(unix)]
fn become_it(mut command: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs a command and returns its exit status, which is a byte.
#[cfg(not(unix))]
fn become_it(mut command: Command) -> io::Result<ExitCode> {
    let code = command.status()?.code();
    let byte = code.and_then(|code| u8::try_from(code).ok());
    Ok(byte.map_or(ExitCode::FAILURE, ExitCode::from))
}
