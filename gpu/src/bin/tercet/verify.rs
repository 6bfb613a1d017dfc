//! `tercet verify`: the conformance suite on every engine of this machine.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;
use tercet_core::conformance;
use tercet_core::engine::Engine as Conforming;
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

use crate::clustering::Spinner;
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet verify
  tercet verify --digests              every operation with its digest
  tercet verify --json

Every operation runs over inputs from fixed seeds, with awkward sizes and values, on scalar code, on each instruction set of the \
processor (on all threads, the best one also on one thread alone), and on the first CUDA device where there is one. What comes out is digested and \
compared with the digests that Tercet was released with: the same on every machine.

Exit status: 0 where every digest is the released one, 1 where one is not, or where an engine fails.

JSON (--json): version, agree, engines[] (engine, operations, agreed, seconds, differ[] (operations)), \
digests[] (operation, expected, differ[] (engine, found)), no_gpu (null, or why there is none).";

/// Show that this machine gives the bits that every other gives
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print each operation's digest
    #[arg(long)]
    digests: bool,
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

#[derive(Debug, Serialize)]
struct EngineFound {
    engine: String,
    operations: usize,
    agreed: usize,
    seconds: f64,
    differ: Vec<&'static str>,
    #[serde(skip)]
    found: Vec<(&'static str, Found)>,
}

/// What an engine gave: a digest, or of operations that core has no digest of, whether it is core's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Digest(u64),
    Same(bool),
}

#[derive(Debug, Serialize)]
struct Digest {
    operation: &'static str,
    expected: Option<String>,
    differ: Vec<Differ>,
}

#[derive(Debug, Serialize)]
struct Differ {
    engine: String,
    found: String,
}

impl Found {
    fn agrees(self, operation: &str) -> bool {
        match self {
            Self::Digest(digest) => conformance::expected(operation) == Some(digest),
            Self::Same(same) => same,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Digest(digest) => format!("{digest:016x}"),
            Self::Same(true) => "core's".to_owned(),
            Self::Same(false) => "not core's".to_owned(),
        }
    }
}

impl EngineFound {
    /// Hears all that `suite` reports.
    fn of(engine: String, suite: impl FnOnce(&mut dyn FnMut(&'static str, Found))) -> Self {
        let start = Instant::now();
        let mut found = Vec::new();
        suite(&mut |operation, it| found.push((operation, it)));
        let differ = found.iter().filter(|(operation, it)| !it.agrees(operation));
        let differ: Vec<_> = differ.map(|(operation, _)| *operation).collect();
        Self {
            engine,
            operations: found.len(),
            agreed: found.len() - differ.len(),
            seconds: start.elapsed().as_secs_f64(),
            differ,
            found,
        }
    }

    /// What engines supply.
    #[cfg(feature = "cuda")]
    fn engine<E: Conforming>(name: String, engine: &mut E) -> Self {
        Self::of(name, |report| digests(engine, report))
    }

    /// What engines supply, and what the processor's threads have besides.
    fn threads(name: String, mut engine: Threads) -> Self {
        Self::of(name, |report| {
            digests(&mut engine, report);
            tercet_host::conformance::run(&engine, &mut |operation, same| {
                report(operation, Found::Same(same));
            });
        })
    }
}

fn digests<E: Conforming>(engine: &mut E, report: &mut dyn FnMut(&'static str, Found)) {
    conformance::run_engine(engine, &mut |operation, digest| {
        report(operation, Found::Digest(digest));
    });
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let spinner = Spinner::new();
    let mut engines = Vec::new();
    spinner.tell("core".to_owned());
    engines.push(EngineFound::of("core, scalar".to_owned(), |report| {
        conformance::run(&mut |operation, digest| report(operation, Found::Digest(digest)));
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
    let no_gpu = match cuda(&spinner) {
        Ok(found) => {
            engines.push(found);
            None
        }
        Err(reason) => Some(reason),
    };
    drop(spinner);
    let verified = Verified {
        version: env!("CARGO_PKG_VERSION"),
        agree: engines.iter().all(|engine| engine.differ.is_empty()),
        digests: table(&engines),
        engines,
        no_gpu,
    };
    if arguments.json {
        output::json(&verified)?;
    } else {
        output::text(&people(&verified, arguments.digests))?;
    }
    if verified.agree {
        return Ok(());
    }
    let differ: BTreeSet<_> = verified.engines.iter().flat_map(|it| &it.differ).collect();
    let differ: Vec<_> = differ.into_iter().copied().collect();
    Err(Failure::new(format_args!(
        "this machine gives other bits: {}",
        differ.join(", ")
    )))
}

#[cfg(feature = "cuda")]
fn cuda(spinner: &Spinner) -> Result<EngineFound, String> {
    let mut cuda = tercet_gpu::engine::Cuda::first().map_err(|error| error.to_string())?;
    let name = cuda.device_info().map_err(|error| error.to_string())?.name;
    spinner.tell(name.clone());
    Ok(EngineFound::engine(format!("cuda, {name}"), &mut cuda))
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: &Spinner) -> Result<EngineFound, String> {
    Err(crate::gpus::WITHOUT.to_owned())
}

/// Every operation that an engine reported, in the order of the first that did, with those that differ.
fn table(engines: &[EngineFound]) -> Vec<Digest> {
    let mut digests: Vec<Digest> = Vec::new();
    for (engine, &(operation, found)) in
        (engines.iter()).flat_map(|engine| engine.found.iter().map(move |found| (engine, found)))
    {
        let known = digests.iter().position(|it| it.operation == operation);
        let index = known.unwrap_or_else(|| {
            let expected = conformance::expected(operation);
            digests.push(Digest {
                operation,
                expected: expected.map(|it| format!("{it:016x}")),
                differ: Vec::new(),
            });
            digests.len() - 1
        });
        if !found.agrees(operation) {
            digests[index].differ.push(Differ {
                engine: engine.engine.clone(),
                found: found.words(),
            });
        }
    }
    digests
}

fn people(verified: &Verified, all: bool) -> String {
    use Align::{Left, Right};
    let mut text = String::new();
    if all || !verified.agree {
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
    if let Some(reason) = &verified.no_gpu {
        text += &format!("no GPU: {reason}\n");
    }
    let engines = format::counted(verified.engines.len() as u64, "engine");
    match verified.agree {
        true => text + &format!("\nall digests are the released ones, on {engines}\n"),
        false => text + "\nnot all digests are the released ones\n",
    }
}
