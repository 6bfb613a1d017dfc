//! Writes results as tables of ratios.

use std::fmt::Write;
use std::path::PathBuf;
use std::{fs, io};

use crate::peers::environment::package;
use tercet_host::measure::{Machine, Measured, date};

/// The head of the table that [`table`] makes.
const HEAD: &str = "\
| operation | size | best engine | its time | G values/s | ÷ scalar | ÷ naive | ÷ ggml | 1 thread ÷ naive | ÷ ggml | all ÷ 1 thread | of roofline: scalar | 1 thread | all | naive | ggml |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// Returns a line for each case, whose results are consecutive.
pub fn table(results: &[Measured]) -> String {
    let mut text = format!("{HEAD}\n");
    for case in results.chunk_by(|a, b| (&a.operation, &a.size) == (&b.operation, &b.size)) {
        let named = |engine: &str| case.iter().find(|found| found.engine == engine);
        let of_threads = || case.iter().filter(|found| found.engine == "threads");
        let one = of_threads().find(|found| found.threads == 1);
        let all = of_threads().max_by_key(|found| found.threads);
        let best = case
            .iter()
            .filter(|found| ["scalar", "threads"].contains(&found.engine))
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let Some(best) = best else {
            continue;
        };
        let (scalar, naive, ggml) = (named("scalar"), named("naive"), named("ggml"));
        let _ = write!(
            text,
            "| {} | {} | {} | {:.4} ms | {:.3} |",
            best.operation,
            best.size,
            best.contender(),
            best.seconds * 1e3,
            best.values_per_second / 1e9
        );
        let more = all.filter(|all| all.threads > 1);
        for (who, other) in [
            (Some(best), scalar),
            (Some(best), naive),
            (Some(best), ggml),
            (one, naive),
            (one, ggml),
            (more, one),
        ] {
            let _ = match who.zip(other) {
                Some((who, other)) => write!(text, " {:.2} |", other.seconds / who.seconds),
                None => write!(text, " |"),
            };
        }
        for who in [scalar, one, more, naive, ggml] {
            let _ = match who {
                Some(who) => write!(text, " {:.1} % |", 100.0 * who.roofline),
                None => write!(text, " |"),
            };
        }
        text.push('\n');
    }
    text
}

/// Returns the command line that ran `bin` of this package in the way of this run.
pub fn command(bin: &str) -> String {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args = args.join(" ");
    format!("cargo run --release -p tercet-benches --bin {bin} -- {args}")
}

/// Writes a table to `results/<machine>/roofline.md` of this package, replacing the last one, and returns the path.
///
/// `command` is the command that made it.
pub fn write(results: &[Measured], command: &str) -> io::Result<PathBuf> {
    let table = table(results);
    let words = "best times. How to read it: [README](../../README.md).";
    save("roofline", &format!("`{command}`; {words}\n\n{table}"))
}

/// Writes `text` below a heading with the machine and after the date to `results/<machine>/<name>.md` of this package,
/// replacing the existing file, and returns the path.
pub fn save(name: &str, text: &str) -> io::Result<PathBuf> {
    let machine = Machine::here();
    let (heading, date) = (machine.describe(), date());
    let text = format!("# {heading}\n\n{date}, {text}");
    save_as(&machine.slug(), &format!("{name}.md"), &text)
}

/// Writes a file of `results/<slug>` of this package, replacing the existing file, and returns its path.
pub fn save_as(slug: &str, name: &str, text: &str) -> io::Result<PathBuf> {
    let folder = package().join("results").join(slug);
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, text)?;
    Ok(path)
}
