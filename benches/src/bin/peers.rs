//! Tercet beside its peers: `peers [--only WORD] [--quick] [--torch] [--json] [--write]`.

use std::error::Error;
use std::process::ExitCode;
use tercet_benches::peers::contest::{Effort, Peers, events, json, measure, table};
use tercet_benches::peers::process::Programs;
use tercet_benches::peers::vec_dot::Kernel;
use tercet_benches::peers::{environment, ggml};
use tercet_benches::{command, save};
use tercet_host::measure::{Machine, date};
use tercet_host::simd::Backend;

const USAGE: &str = "\
usage: peers [--only WORD] [--quick] [--torch] [--json] [--write]
  --only WORD   only work whose name contains it, such as k-means or 1M
  --quick       less of everything: a minute, to see whether it works
  --torch       install PyTorch and fastkmeans too, if they are not there: some 5 GB on Linux, as PyPI has them
  --json        JSON instead of a table
  --write       also write benches/results/<machine>/peers.md
The peers run in a Python that is set up in target/peers (550 MB, from PyPI), or in the one that TERCET_PYTHON names, as it is;
linfa and candle are compiled in target/peers too. ggml takes part where TERCET_GGML names libggml-base.so, BitNet where
TERCET_BITNET names a library of its src/ggml-bitnet-mad.cpp.";

/// What a written page says of itself.
const ABOUT: &str = "Best of many runs, in turns; above 1 Tercet is faster. How to read it: [README](../../README.md).";

#[derive(Default)]
struct Options {
    only: String,
    quick: bool,
    torch: bool,
    json: bool,
    write: bool,
}

/// Reads the command line; `None` where it is not as [`USAGE`] says.
fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => options.only = args.next()?,
            "--quick" => options.quick = true,
            "--torch" => options.torch = true,
            "--json" => options.json = true,
            "--write" => options.write = true,
            _ => return None,
        }
    }
    Some(options)
}

fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let backend = Backend::chosen()?;
    let python = environment::python(options.torch)?;
    if ggml::library().is_none() {
        eprintln!("ggml is left out: TERCET_GGML does not name libggml-base.so");
    }
    if Kernel::bitnet().is_none() {
        eprintln!("BitNet is left out: TERCET_BITNET does not name its compiled kernels");
    }
    let embeddings = environment::embeddings(&python);
    if embeddings.is_none() {
        eprintln!(
            "embeddings are left out: {} has no wordllama",
            python.display()
        );
    }
    let rust = environment::rust();
    if let Err(error) = &rust {
        eprintln!("linfa and candle are left out: {error}");
    }
    let mut peers = Peers::new(Programs {
        python: Some(python),
        rust: rust.ok(),
    });
    let effort = if options.quick {
        Effort {
            rounds: 3,
            turn: 0.01,
            seconds: 0.1,
        }
    } else {
        Effort {
            rounds: 5,
            turn: 0.05,
            seconds: 1.0,
        }
    };
    let inputs = environment::folder().join("inputs");
    let mut rows = Vec::new();
    for event in events(options.quick, embeddings.as_deref()) {
        if event.name.contains(&options.only) {
            eprintln!("{}", event.name);
            rows.extend(measure((event.case)(&inputs)?, &mut peers, effort)?);
        }
    }
    let versions = peers.versions().into_iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let versions = versions.join(", ");
    let machine = Machine::here();
    if options.json {
        let found = serde_json::json!({
            "machine": machine, "backend": backend.isa().name(), "date": date(), "versions": versions, "rows": json(&rows),
        });
        println!("{found:#}");
    } else {
        let (heading, date, table) = (machine.describe(), date(), table(&rows));
        println!(
            "{heading}, backend {backend}, {date}; {versions}

{table}"
        );
    }
    if options.write {
        let (command, table) = (command("peers"), table(&rows));
        let how = format!("`{command}`, backend {backend}; {versions}. {ABOUT}");
        let path = save("peers", &format!("{how}\n\n{table}"))?;
        eprintln!("written to {}", path.display());
    }
    Ok(rows.iter().all(|row| row.refused.is_empty()))
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        // Someone's answer was another.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}
