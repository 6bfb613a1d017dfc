//! `tercet verify`: runs the conformance suite on every engine of this machine, and on emulated boards.

mod board;
mod emulate;
mod found;
mod image;
#[allow(
    unreachable_pub,
    reason = "the firmware's runner compiles it as a module of a library"
)]
mod qemu;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{panic, thread};

use serde::Serialize;
use tercet_core::conformance;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

use crate::clustering::Spinner;
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{format, output};
use board::Board;
use found::{Digest, EngineFound, EngineResult, table};

pub(crate) use qemu::abandon;

const EXAMPLES: &str = "\
Examples:
  tercet verify
  tercet verify --digests              every operation with its digest
  tercet verify --firmware images      also on emulated microcontrollers
  tercet verify --json

Every operation runs on inputs from fixed seeds, with awkward sizes and values. It runs as scalar code, on each \
instruction set of the processor (on all threads; the best set also on one thread) and on the first CUDA device if \
present. The digests of the results are compared with those that Tercet was released with, which are the same on \
every machine.

--firmware reads a folder that has one folder per board, with the images of the suite and a board.json that says how \
QEMU runs them. To make it, run `cargo firmware images DIR` in Tercet's sources. Boards run in parallel with each \
other and with the engines. An image is a program that may read and write files with your permissions: run only \
images that you built.

Exit status: 0 if every digest is the released one, 1 if one differs or is missing, or if an engine or a board fails.

JSON (--json): version, agree, engines[] (engine, operations, agreed, seconds, differ[] (operations), failed (null, \
or how a board failed)), digests[] (operation, expected, differ[] (engine, found)), no_gpu (null, or why there is \
none).";

/// Check that this machine gives the same bits as every other
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print each operation's digest
    #[arg(long)]
    digests: bool,
    /// Also run the suite on emulated boards, with the images in this folder
    #[arg(long, value_name = "DIR")]
    firmware: Option<PathBuf>,
    /// End an image that takes longer
    #[arg(long, value_name = "SECONDS", requires = "firmware", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Verified {
    version: &'static str,
    agree: bool,
    engines: Vec<EngineFound>,
    digests: Vec<Digest>,
    no_gpu: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Report a bad folder before any work.
    let boards = arguments
        .firmware
        .as_deref()
        .map_or(Ok(Vec::new()), boards)?;
    let limit = Duration::from_secs(arguments.limit.into());
    let spinner = Spinner::new();
    // At the same time, because the engines seldom have work for all threads.
    let (mut engines, no_gpu, boards) = thread::scope(|scope| {
        let boards = scope.spawn(|| emulated(&boards, limit, &spinner));
        let (engines, no_gpu) = engines(&spinner);
        (engines, no_gpu, boards.join())
    });
    engines.extend(boards.unwrap_or_else(|panic| panic::resume_unwind(panic)));
    drop(spinner);
    let verified = Verified {
        version: env!("CARGO_PKG_VERSION"),
        agree: engines.iter().all(EngineFound::agrees),
        digests: table(&engines),
        engines,
        no_gpu,
    };
    if arguments.json {
        output::json(&verified)?;
    } else {
        output::text(&people(&verified, arguments.digests))?;
    }
    match verified.agree {
        true => Ok(()),
        false => Err(Failure::new(failure(&verified.engines))),
    }
}

/// Returns the results of this machine's engines, and the reason if there is no GPU among them.
fn engines(spinner: &Spinner) -> (Vec<EngineFound>, Option<String>) {
    let mut engines = Vec::new();
    spinner.tell("core".to_owned());
    engines.push(EngineFound::of("core, scalar".to_owned(), |report| {
        conformance::run(&mut |operation, digest| report(operation, EngineResult::Digest(digest)));
    }));
    for backend in Backend::all() {
        spinner.tell(backend.to_string());
        let threads = Threads::default().with_backend(backend);
        engines.push(EngineFound::threads(
            format!("{backend}, all threads"),
            threads,
        ));
    }
    let best = Backend::best();
    let alone = Threads::alone().with_backend(best);
    engines.push(EngineFound::threads(format!("{best}, one thread"), alone));
    match cuda(spinner) {
        Ok(found) => {
            engines.push(found);
            (engines, None)
        }
        Err(reason) => (engines, Some(reason)),
    }
}

/// Returns the boards in a folder, if their emulators are installed.
fn boards(folder: &Path) -> Result<Vec<Board>, Failure> {
    let boards = board::all(folder)?;
    emulate::installed(&boards).map_err(Failure::new)?;
    Ok(boards)
}

fn emulated(boards: &[Board], limit: Duration, spinner: &Spinner) -> Vec<EngineFound> {
    if boards.is_empty() {
        return Vec::new();
    }
    let images: usize = boards.iter().map(|board| board.images.len()).sum();
    let tell = |ended: usize| spinner.tell(format!("emulated boards: {ended} of {images} images"));
    tell(0);
    let printed = emulate::all(boards, limit, &tell);
    let of = boards.iter().zip(&printed);
    of.map(|(board, printed)| EngineFound::board(board, printed))
        .collect()
}

/// Describes in one line the results that differ from the release.
fn failure(engines: &[EngineFound]) -> String {
    let failed = engines.iter().filter_map(|it| {
        let reason = it.failed.as_ref()?;
        Some(format!("{}: {reason}", it.engine))
    });
    let mut told: Vec<String> = failed.collect();
    let mut differ: Vec<&str> = (engines.iter())
        .flat_map(|it| it.differ.iter().copied())
        .collect();
    differ.sort_unstable();
    differ.dedup();
    if !differ.is_empty() {
        told.insert(
            0,
            format!(
                "results differ from the released ones: {}",
                differ.join(", ")
            ),
        );
    }
    told.join("; ")
}

#[cfg(feature = "cuda")]
fn cuda(spinner: &Spinner) -> Result<EngineFound, String> {
    let mut cuda = tercet_gpu::engine::Cuda::first().map_err(|error| error.to_string())?;
    let name = cuda.device_info().map_err(|error| error.to_string())?.name;
    spinner.tell(name.clone());
    Ok(EngineFound::device(format!("cuda, {name}"), &mut cuda))
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: &Spinner) -> Result<EngineFound, String> {
    Err(crate::gpus::WITHOUT.to_owned())
}

fn people(verified: &Verified, all: bool) -> String {
    use Align::{Left, Right};
    let mut text = String::new();
    let differs = verified.digests.iter().any(|it| !it.differ.is_empty());
    if all || differs {
        let mut table = Table::new(&[("operation", Left), ("digest", Left), ("", Left)]);
        for digest in &verified.digests {
            let differ = digest.differ.iter();
            let differ: Vec<_> = differ
                .map(|it| format!("{} gives {}", it.engine, it.found))
                .collect();
            if all || !differ.is_empty() {
                let expected = digest.expected.as_deref().unwrap_or("as core's");
                table.row([digest.operation, expected, &differ.join("; ")]);
            }
        }
        text += &format!("{}\n", table.render());
    }
    let mut table = Table::new(&[
        ("engine", Left),
        ("operations", Right),
        ("agree", Right),
        ("seconds", Right),
    ]);
    for engine in &verified.engines {
        table.row([
            engine.engine.clone(),
            engine.operations.to_string(),
            engine.agreed.to_string(),
            format!("{:.2}", engine.seconds),
        ]);
    }
    text += &table.render();
    for engine in &verified.engines {
        if let Some(reason) = &engine.failed {
            text += &format!("{}: {}\n", engine.engine, format::printable(reason));
        }
    }
    if let Some(reason) = &verified.no_gpu {
        text += &format!("no GPU: {reason}\n");
    }
    let engines = format::counted(verified.engines.len() as u64, "engine");
    match verified.agree {
        true => text + &format!("\nall digests are the released ones, on {engines}\n"),
        false => text + "\nnot all digests are the released ones\n",
    }
}
