//! Prints Lloyd's step beside scikit-learn's and faiss': `kmeans [--only WORD] [--points N] [--steps N] [--seconds S] [--write]`.

use std::error::Error;
use std::process::ExitCode;
use tercet_benches::kmeans::{Data, Effort, SHAPES, measure, page};
use tercet_benches::peers::python::{Python, interpreter};
use tercet_benches::{command, save};
use tercet_host::measure::{Machine, date};

const USAGE: &str = "\
usage: kmeans [--only WORD] [--points N] [--steps N] [--seconds S] [--write]
  --only WORD   only sets of points whose name contains it, such as k=64 or embeddings
  --points N    only the first N points of each set, to see whether it works
  --steps N     steps to time (10)
  --seconds S   at least so long for each contender and set (2)
  --write       also write benches/results/<date>-<machine>-kmeans.md
scikit-learn and faiss take part where TERCET_PYTHON names a Python that has them.";

/// What a written page says of itself.
const ABOUT: &str = "Lloyd's loop, time a step from fits of two lengths, best of many; peer's time ÷ Tercet's first: above 1 \
Tercet is faster. How to read it: [README](../README.md).";

struct Options {
    only: String,
    points: usize,
    effort: Effort,
    write: bool,
}

/// Reads the command line; `None` where it is not as [`USAGE`] says.
fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        only: String::new(),
        points: usize::MAX,
        effort: Effort {
            steps: 10,
            seconds: 2.0,
        },
        write: false,
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => options.only = args.next()?,
            "--points" => {
                options.points = args.next()?.parse().ok().filter(|&points| points > 0)?;
            }
            "--steps" => {
                let steps = args.next()?.parse().ok();
                options.effort.steps = steps.filter(|steps| (1..=1000).contains(steps))?;
            }
            "--seconds" => {
                let seconds = args.next()?.parse().ok();
                options.effort.seconds =
                    seconds.filter(|seconds| (0.0..=3600.0).contains(seconds))?;
            }
            "--write" => options.write = true,
            _ => return None,
        }
    }
    Some(options)
}

/// The interpreter with its peers; says what is left out.
fn python() -> Option<Python> {
    match Python::start() {
        Ok(python) => {
            for (peer, why) in &python.here.missing {
                eprintln!("{peer} is left out: {}: {why}", interpreter().display());
            }
            Some(python)
        }
        Err(error) => {
            let path = interpreter();
            eprintln!(
                "scikit-learn and faiss are left out: {}: {error}",
                path.display()
            );
            None
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let mut python = python();
    let embeddings = python
        .as_ref()
        .and_then(|python| python.here.embeddings.clone());
    if embeddings.is_none() {
        eprintln!(
            "embeddings are left out: {} has no wordllama",
            interpreter().display()
        );
    }
    let mut rows = Vec::new();
    let mixtures = SHAPES
        .into_iter()
        .map(|(n, dims, k)| Ok(Data::mixture(n.min(options.points), dims, k)));
    let embeddings = embeddings
        .iter()
        .map(|path| Data::embeddings(path, options.points));
    for data in mixtures.chain(embeddings) {
        let data = data?;
        if data.name.contains(&options.only) {
            eprintln!("{}", data.name);
            rows.push(measure(&data, python.as_mut(), options.effort)?);
        }
    }
    let (page, versions) = (page(&rows), versions(python.as_ref()));
    println!(
        "{}, {}; {versions}\n\n{page}",
        Machine::here().describe(),
        date()
    );
    if options.write {
        let note = format!("`{}`; {versions}. {ABOUT}\n\n{page}", command("kmeans"));
        println!("written to {}", save("-kmeans", &note)?.display());
    }
    Ok(())
}

/// The peers and what they run on.
fn versions(python: Option<&Python>) -> String {
    if python.is_none() {
        return "no peers".into();
    }
    let versions = python.iter().flat_map(|python| &python.here.versions);
    let versions = versions.map(|(name, version)| format!("{name} {version}"));
    versions.collect::<Vec<_>>().join(", ")
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kmeans: {error}");
            ExitCode::FAILURE
        }
    }
}
