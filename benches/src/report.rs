//! Times to ratios.

use crate::{Case, Traffic, Who, machine};
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::{fs, io};
use tercet_host::measure::bandwidth;

/// The best times of a case, and what the machine can do over its working set.
#[derive(Debug)]
pub struct Row {
    name: String,
    values: usize,
    bytes: usize,
    /// Bytes a second, of one thread and of all.
    ceilings: [f64; 2],
    times: Vec<(Who, f64)>,
}

impl Row {
    /// Measures the ceilings of a case, right beside its times (seconds a run; the best one for each contender).
    pub fn new(case: &Case, times: Vec<(Who, f64)>) -> Self {
        let (bytes, traffic) = (case.bytes, case.traffic);
        let rate = move || {
            let measured = bandwidth(bytes, 5);
            match traffic {
                Traffic::Read => measured.read,
                Traffic::Narrow => measured.narrow,
                Traffic::Widen => measured.widen,
            }
        };
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let ceilings = [one.expect("a thread starts").install(rate), rate()];
        Self {
            name: case.name.clone(),
            values: case.values,
            bytes: case.bytes,
            ceilings,
            times,
        }
    }

    fn time(&self, who: Who) -> Option<f64> {
        self.times
            .iter()
            .find(|(other, _)| *other == who)
            .map(|&(_, time)| time)
    }

    /// How many times as fast `who` is as `other`.
    fn ratio(&self, who: Who, other: Who) -> Option<f64> {
        Some(self.time(other)? / self.time(who)?)
    }

    /// Bytes moved over what memory could have moved in the same time: 1 is the roofline.
    fn roofline(&self, who: Who) -> Option<f64> {
        let ceiling = self.ceilings[usize::from(who == Who::Threads)];
        Some(self.bytes as f64 / (self.time(who)? * ceiling))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} M |", self.name, self.values >> 20)?;
        for (who, other) in [
            (Who::Scalar, Who::Naive),
            (Who::Scalar, Who::Ggml),
            (Who::Threads, Who::Scalar),
        ] {
            match self.ratio(who, other) {
                Some(ratio) => write!(f, " {ratio:.2} |")?,
                None => f.write_str(" |")?,
            }
        }
        for who in [Who::Scalar, Who::Threads, Who::Naive, Who::Ggml] {
            match self.roofline(who) {
                Some(fraction) => write!(f, " {:.1} % |", 100.0 * fraction)?,
                None => f.write_str(" |")?,
            }
        }
        let [one, all] = self.ceilings.map(|ceiling| ceiling / 1e9);
        write!(f, " {one:.1} | {all:.1} |")
    }
}

/// The head of the table of [`Row`]s.
pub const HEAD: &str = "\
| operation | values | scalar ÷ naive | scalar ÷ ggml | threads ÷ scalar | of roofline: scalar | threads | naive | ggml | ceiling GB/s: 1 thread | all |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// The command line that ran `bin` of this package as it was run now.
pub fn command(bin: &str) -> String {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args = args.join(" ");
    format!("cargo run --release -p tercet-benches --bin {bin} -- {args}")
}

/// Writes a table to `results/<date>-<machine>.md` of this package, over one of the same day, and returns the path.
///
/// `command` is how it was made.
pub fn write(rows: &[Row], command: &str) -> io::Result<PathBuf> {
    let mut text = format!("`{command}`; best times.");
    let _ = writeln!(text, " How to read it: [README](../README.md).\n\n{HEAD}");
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
    save("", &text)
}

/// Writes `text`, headed by the machine and begun by the date, to `results/<date>-<machine><suffix>.md` of this package, over one
/// of the same day, and returns the path.
pub fn save(suffix: &str, text: &str) -> io::Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results");
    fs::create_dir_all(&folder)?;
    let (date, machine) = (machine::date(), machine::describe());
    let path = folder.join(format!("{date}-{}{suffix}.md", machine::slug()));
    fs::write(&path, format!("# {machine}\n\n{date}, {text}"))?;
    Ok(path)
}
