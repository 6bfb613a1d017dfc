//! Compares Tercet with its peers: `peers [--cuda] [--only WORD] [--quick] [--torch] [--json] [--write]`.

use std::error::Error;
use std::process::ExitCode;
use tercet_benches::peers::contest::{
    Effort, Event, Peers, Row, cuda, events, json, measure, picture, table,
};
use tercet_benches::peers::process::Programs;
use tercet_benches::peers::vec_dot::Kernel;
use tercet_benches::peers::{environment, ggml};
use tercet_benches::{command, save_as};
use tercet_host::measure::{Machine, date, slug};
use tercet_host::simd::Backend;

const USAGE: &str = "\
usage: peers [--cuda] [--only WORD] [--quick] [--torch] [--json] [--write]
  --cuda        Tercet on the first CUDA device, beside what else runs there and beside the processor
  --only WORD   only work whose name contains it, such as k-means or 1M
  --quick       less of everything: a minute, to see whether it works
  --torch       install PyTorch and fastkmeans too, if they are not there: some 5 GB on Linux, as PyPI has them;
                with --cuda also CuPy and flash-kmeans
  --json        JSON instead of a table
  --write       also write peers.md, and with --cuda peers.json and peers.svg, of benches/results/<machine or device>
The peers run in a Python that is set up in target/peers (550 MB, from PyPI), or in the one that TERCET_PYTHON names, as it is;
linfa and candle are compiled in target/peers too. ggml takes part where TERCET_GGML names libggml-base.so, BitNet where
TERCET_BITNET names a library of its src/ggml-bitnet-mad.cpp. TERCET_BENCHES names the folder `benches` of the repository where
that is not where this was compiled.";

/// Description at the top of a written page.
const ABOUT: &str = "Best of many runs, in turns; above 1 Tercet is faster. How to read it: [README](../../README.md).";

#[derive(Default)]
struct Options {
    cuda: bool,
    only: String,
    quick: bool,
    torch: bool,
    json: bool,
    write: bool,
}

/// Reads the command line; `None` if it does not match [`USAGE`].
fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--cuda" => options.cuda = true,
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

/// The participants and the events.
struct Contest {
    /// Description of the hardware that did the work.
    machine: String,
    /// The same as a folder name.
    slug: String,
    programs: Programs,
    events: Vec<Event>,
}

fn on_processor(options: &Options) -> Result<Contest, Box<dyn Error>> {
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
    let machine = Machine::here();
    Ok(Contest {
        machine: machine.describe(),
        slug: machine.slug(),
        programs: Programs {
            python: Some(python),
            rust: rust.ok(),
        },
        events: events(options.quick, embeddings.as_deref()),
    })
}

fn on_device(options: &Options) -> Result<Contest, Box<dyn Error>> {
    // First, since without a device there is no need to set up a Python.
    let device = cuda::device()?;
    let python = environment::python_for_cuda(options.torch)?;
    let machine = Machine::here();
    Ok(Contest {
        machine: format!("{device}; {}", machine.describe()),
        slug: slug(&device.name),
        programs: Programs {
            python: Some(python),
            rust: None,
        },
        events: cuda::events(options.quick),
    })
}

/// Lets everyone do the work whose name contains the word.
fn rows(
    contest: Vec<Event>,
    options: &Options,
    peers: &mut Peers,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let (rounds, turn, seconds) = match options.quick {
        true => (3, 0.01, 0.1),
        false => (5, 0.05, 1.0),
    };
    let effort = Effort {
        rounds,
        turn,
        seconds,
    };
    let inputs = environment::folder().join("inputs");
    let mut rows = Vec::new();
    for event in contest {
        if event.name.contains(&options.only) {
            eprintln!("{}", event.name);
            rows.extend(measure((event.case)(&inputs)?, peers, effort)?);
        }
    }
    Ok(rows)
}

fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let backend = Backend::chosen()?;
    let contest = match options.cuda {
        true => on_device(options)?,
        false => on_processor(options)?,
    };
    let mut peers = Peers::new(contest.programs);
    let rows = rows(contest.events, options, &mut peers)?;
    let versions = peers.versions().into_iter();
    let versions: Vec<_> = versions
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let versions = versions.join(", ");
    let (heading, slug) = (contest.machine, contest.slug);
    let found = serde_json::json!({
        "on": heading, "machine": Machine::here(), "backend": backend.isa().name(), "date": date(), "versions": versions, "rows": json(&rows),
    });
    if options.json {
        println!("{found:#}");
    } else {
        let (date, table) = (date(), table(&rows));
        println!(
            "{heading}, backend {backend}, {date}; {versions}

{table}"
        );
    }
    if options.write {
        let (command, table, date) = (command("peers"), table(&rows), date());
        let how = format!("`{command}`, backend {backend}; {versions}. {ABOUT}");
        let text = format!("# {heading}\n\n{date}, {how}\n\n{table}");
        let mut written = vec![save_as(&slug, "peers.md", &text)?];
        if options.cuda {
            written.push(save_as(&slug, "peers.json", &format!("{found:#}\n"))?);
            let facts = [
                ("device", &*heading),
                ("date", &*date),
                ("peers", &*versions),
            ];
            let title = "Times of others over Tercet's on the device";
            let page = picture(title, &heading, &facts, &rows);
            written.push(save_as(&slug, "peers.svg", page.svg())?);
        }
        for path in &written {
            eprintln!("written to {}", path.display());
        }
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
        // A participant's answer was different.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}
