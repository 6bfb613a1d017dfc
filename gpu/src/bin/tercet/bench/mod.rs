//! `tercet bench`: measures how fast the engines are on this machine, compared with its limits.

mod choice;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod results;
mod tables;

use std::path::PathBuf;
use std::time::Instant;

use tercet_host::measure::{
    BackendPeak, Bandwidth, Contender, Entry, Machine, Runner, Settings, Stopped, bandwidth,
    catalogue, date,
};
use tercet_host::simd::Backend;

use choice::{Backends, Size};
use results::{Files, Results};

use crate::failure::Failure;
use crate::output;
use crate::progress::Steps;

const EXAMPLES: &str = "\
Examples:
  tercet bench --quick                                   every operation on a million values, in seconds
  tercet bench --report speed                            takes minutes; speed/bench.html has charts
  tercet bench --op matvec search --backend all          two operations, each instruction set
  tercet bench --op \"k-means\" --threads 1,2,4,8 --json   scaling over threads
  tercet bench --backend cuda --op encode matmat         the first CUDA device next to scalar code
  tercet bench --list                                    operations and sizes, without measuring

Each contender's result is compared with the scalar engine's before any timing. The contenders take turns, and the \
table shows each one's best time; the lines after it name the fastest one of each case, and the next one. The \
speed-up is relative to the scalar engine on one thread. The roofline is the shortest time in which this machine \
could move the bytes and do the multiply-adds. Its limits are measured in the same run: the memory bandwidth at the \
case's working set, and the multiply-adds per second of the contender's instruction set (of the best one here if it \
has none). Other load on the machine affects all of these figures.

A CUDA device works on data that stays in its memory. Its times come from its own events and include the processor's \
work between kernels. Its roofline is the time to move the case's bytes as fast as a copy within device memory of \
the same working set, measured in the same run; multiply-adds do not count. Operations without a kernel for the \
device have no row for it.

JSON (--json, and bench.json of --report): version, date, machine (processor, threads, system, architecture, \
backends), quick, bandwidth[] (bytes, threads, and plain and streamed bytes a second of read, write, copy, narrow, \
widen), peaks[] (backend, threads, multiply-adds a second of f32, int8, ternary), device (null, or as in `tercet \
info`, and copies[] (bytes, bytes_per_second), and transfers (null, or bytes, to_device_bytes_per_second, \
from_device_bytes_per_second)), results[] (operation, size, values, engine, backend, threads (0 on a device), device \
(whether it is one), seconds, median_seconds, samples, values_per_second, bytes, bytes_per_second, products, \
arithmetic, products_per_second, attainable_seconds, bound, roofline, speedup, peak_memory, added_memory), \
left_out[] (what the device had no room for), files[], seconds.";

/// Time every operation on this machine, engines side by side, against its limits
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// One size of about a million values, and less time for each
    #[arg(long)]
    quick: bool,
    /// Only operations whose name contains one of these words
    #[arg(long, value_name = "WORD", num_args = 1..)]
    op: Vec<String>,
    /// Engines to time beside the scalar engine: instruction sets, `cuda`, or `all` of these that are here [default:
    /// the best set here]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    backend: Vec<Backends>,
    /// Approximate number of values, as 1000000, 100K, 1M or 16Mi, instead of the sizes that --list shows
    #[arg(long, value_name = "VALUES", num_args = 1.., value_delimiter = ',')]
    size: Vec<Size>,
    /// Show what would be measured, and measure nothing
    #[arg(long, conflicts_with_all = ["report", "json"])]
    list: bool,
    /// Write bench.html, a page with pictures, and bench.json into a folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Replace files of an earlier report
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Number of values if --quick is given and --size is not.
const QUICK: usize = 1 << 20;

/// `threads` is the value of `--threads`.
pub(crate) fn run(arguments: &Arguments, threads: &[u16]) -> Result<(), Failure> {
    let start = Instant::now();
    let entries = arguments.entries()?;
    if arguments.list {
        return output::text(&tables::list(&entries));
    }
    let contenders = choice::contenders(&arguments.backend, threads);
    let mut device = choice::device(&arguments.backend)?;
    let files = arguments.report.as_deref();
    let files = files.map(|folder| Files::prepare(folder, arguments.force));
    let files = files.transpose()?;
    let settings = if arguments.quick {
        Settings::quick()
    } else {
        Settings::thorough()
    };
    let mut runner = Runner::new(settings);
    let steps = Steps::new(entries.len() as u64 + 1);
    steps.next("memory and arithmetic");
    let bandwidth = arguments.bandwidths(&mut runner, settings, &contenders);
    for by in &contenders {
        runner.ceilings().peak(by.backend(), by.threads());
    }
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for entry in &entries {
        steps.next(&format!("{}, {}", entry.operation, entry.size));
        let case = entry.build();
        let measured = match &mut device {
            None => runner
                .run(&case, &contenders)
                .map(|rows| found.extend(rows))
                .map_err(Stopped::from),
            Some(on) => runner.run_on_device(&case, &contenders, &mut *on.device, &mut found),
        };
        match measured {
            Ok(()) => {}
            Err(stopped @ Stopped::NoRoom { .. }) => left_out.push(stopped.to_string()),
            Err(stopped) => return Err(Failure::new(stopped)),
        }
    }
    drop(steps);
    // The current values: peaks that some work exceeded have been measured again.
    let mut peaks: Vec<BackendPeak> = Vec::new();
    for by in &contenders {
        let peak = runner.ceilings().named_peak(by.backend(), by.threads());
        // The scalar engine and threads without an instruction set have the same multiply-adds.
        let name = |peak: &BackendPeak| (peak.backend, peak.threads);
        if !peaks.iter().any(|other| name(other) == name(&peak)) {
            peaks.push(peak);
        }
    }
    let device = device.map(|on| on.describe(arguments.quick, settings.ceiling));
    let device = device.transpose().map_err(Failure::new)?;
    let mut results = Results {
        version: env!("CARGO_PKG_VERSION"),
        date: date(),
        machine: Machine::here(),
        quick: arguments.quick,
        bandwidth,
        peaks,
        device,
        results: found,
        left_out,
        files: Vec::new(),
        seconds: start.elapsed().as_secs_f64(),
    };
    if let Some(files) = files {
        files.write(&mut results)?;
    }
    if arguments.json {
        output::json(&results)
    } else {
        output::text(&tables::people(&results))
    }
}

impl Arguments {
    /// Returns the operations to measure.
    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let mut sizes: Vec<Option<usize>> = self.size.iter().map(|size| Some(size.0)).collect();
        if sizes.is_empty() {
            sizes.push(self.quick.then_some(QUICK));
        }
        let words: Vec<String> = self.op.iter().map(|word| word.to_lowercase()).collect();
        let wanted = |entry: &Entry| {
            words.is_empty() || words.iter().any(|word| entry.operation.contains(word))
        };
        let all = sizes.into_iter().flat_map(catalogue);
        let entries: Vec<Entry> = all.filter(wanted).collect();
        if entries.is_empty() {
            return Err(Failure::usage(format_args!(
                "no operation's name contains {}; `tercet bench --list` names them",
                self.op.join(" or ")
            )));
        }
        Ok(entries)
    }

    /// Measures memory over working sets from the nearest cache to beyond the last one, to 64 MiB with `--quick`, for each
    /// number of threads.
    fn bandwidths(
        &self,
        runner: &mut Runner,
        settings: Settings,
        contenders: &[Contender],
    ) -> Vec<Bandwidth> {
        let sets: Vec<usize> = if self.quick {
            (14..=26).step_by(3).map(|power| 1 << power).collect()
        } else {
            (14..=29).map(|power| 1 << power).collect()
        };
        let mut threads: Vec<usize> = contenders.iter().map(|by| by.threads()).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut found = Vec::new();
        for threads in threads {
            for &set in &sets {
                found.push(runner.ceilings().install(threads, || {
                    bandwidth(Backend::best(), set, settings.ceiling)
                }));
            }
        }
        found
    }
}
