//! `tercet tune`: measures the costs of operations on this machine, and stores, draws and checks them.

mod checked;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use tercet_gpu::dispatch::tune::{self, Key, TuneOptions, Tuning, TuningError};
use tercet_gpu::dispatch::{
    Costs, Dispatcher, Engine, Operation, Preference, Settings, TuningFile,
};
use tercet_host::file::output::Output;
use tercet_host::points::Destination;
use tercet_host::simd::Backend;

use self::checked::Checked;
use crate::clustering::Spinner;
use crate::engine::dispatcher;
use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet tune                            measure for about eight seconds and save the costs
  tercet tune --quick                    measure for about two seconds
  tercet tune --check                    measure twice, compare the choices, time the engines
  tercet tune --check --report check.md  the same, with a table of every point
  tercet tune --show costs.svg           chart the costs in use, and where engines change
  tercet tune --reset                    delete the saved costs; built-in costs apply

Every operation is timed on every engine over a grid of sizes. The engines are scalar code, the processor's kernels \
on one thread and on all threads, and the first CUDA device if present. Commands with --backend auto, and programs \
that use the library's dispatcher, then choose engines by these times. Results never depend on the choice.

The costs are saved in tercet/tuning.json in the cache directory (XDG_CACHE_HOME, else ~/.cache), or in the file \
that TERCET_TUNING names. A file from another machine, number of threads or version is not used, and a warning says \
why. TERCET_TUNING=off ignores the file.

JSON (--json): file, made, device (null or its name and driver), seconds, choices[] (operation, steps[] (elements, \
engine): from so many elements on), check (null or regret (good, share, points[] (operation, elements, work, items, \
chosen, best, seconds, best_seconds, regret, predicted, engines[] (engine, seconds, predicted))), agreement (points, \
alike, share, others[]), overhead, tuned (seconds of each tuning)); of --reset and --show: file, removed; of --show: \
file, drawn, origin.";

/// Measure the cost of operations on this machine, by which engines are chosen
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Measure less: about two seconds instead of eight
    #[arg(long, conflicts_with_all = ["reset", "show"])]
    quick: bool,
    /// Measure twice and compare the choices; also run every operation on every engine at other sizes, and report how
    /// often the choice is within 15 % of the best
    #[arg(long, conflicts_with_all = ["reset", "show"])]
    check: bool,
    /// Write every checked point as a Markdown table
    #[arg(long, value_name = "OUT", requires = "check", group = "out")]
    report: Option<PathBuf>,
    /// Draw the costs in use instead of measuring (.svg or .html)
    #[arg(long, value_name = "OUT", conflicts_with = "reset", group = "out")]
    show: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Remove the file of measured costs
    #[arg(long)]
    reset: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Summary {
    file: PathBuf,
    made: String,
    device: Option<String>,
    seconds: f64,
    choices: Vec<Choices>,
    check: Option<Checked>,
}

/// The engine of an operation, by size.
#[derive(Debug, Serialize)]
struct Choices {
    operation: Operation,
    steps: Vec<Threshold>,
}

#[derive(Debug, Serialize)]
struct Threshold {
    /// Minimum number of elements.
    elements: u64,
    engine: Engine,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Measure all engines, the processor's with its best instruction set, whichever the environment would choose.
    Backend::best().choose()?;
    let settings = Settings::with_wish(Preference::Any)?;
    let file = tune::path(&settings.tuning);
    if let Some(out) = &arguments.show {
        return show(arguments, out, settings);
    }
    let file = file.ok_or(match settings.tuning {
        TuningFile::Off => Failure::usage(
            "TERCET_TUNING is off, so costs cannot be saved; unset it, or set it to a file",
        ),
        _ => Failure::new(TuningError::Nowhere),
    })?;
    if arguments.reset {
        return reset(arguments, &file);
    }
    measure(arguments, &settings, file)
}

/// Returns a dispatcher without the costs that are about to be replaced.
fn plain(settings: &Settings) -> Dispatcher {
    dispatcher(Settings {
        tuning: TuningFile::Off,
        ..settings.clone()
    })
}

fn measure(arguments: &Arguments, settings: &Settings, file: PathBuf) -> Result<(), Failure> {
    let start = Instant::now();
    let options = match arguments.quick {
        true => TuneOptions::quick(),
        false => TuneOptions::default(),
    };
    if let Some(out) = &arguments.report {
        let to = Destination {
            path: out,
            inputs: &[],
            overwrite: arguments.force,
        };
        to.check(&["md"])?;
    }
    let spinner = Spinner::new();
    let tell = |operation: Operation| spinner.tell(format!("{operation}"));
    let tuning =
        tune::tune(&plain(settings), &options, &mut |it| tell(it)).map_err(Failure::new)?;
    let seconds = start.elapsed().as_secs_f64();
    tuning.write(&file).map_err(Failure::new)?;
    let check = match arguments.check {
        false => None,
        true => Some(Checked::of(settings, &options, &tuning, seconds, &|it| {
            tell(it)
        })?),
    };
    drop(spinner);
    if let (Some(check), Some(out)) = (&check, &arguments.report) {
        let text = check.markdown(&Key::here(), &tuning.made);
        let mut output = Output::create(out, [], arguments.force)?;
        output.write(text.as_bytes())?;
        output.finish()?;
    }
    let summary = Summary {
        file,
        made: tuning.made,
        device: tuning.device,
        seconds,
        choices: choices(&tuning.costs),
        check,
    };
    if arguments.json {
        return output::json(&summary);
    }
    output::text(&people(&summary))
}

/// Returns the fastest engines, with the sizes at which they change.
fn choices(costs: &Costs) -> Vec<Choices> {
    let all = Operation::ALL.into_iter().map(|operation| Choices {
        operation,
        steps: tune::crossings(costs, operation)
            .into_iter()
            .map(|(elements, engine)| Threshold { elements, engine })
            .collect(),
    });
    all.collect()
}

fn people(summary: &Summary) -> String {
    let Key {
        processor, threads, ..
    } = Key::here();
    let device = summary.device.as_deref().unwrap_or("none");
    let mut text = format!(
        "processor  {processor}, {}\nGPU        {device}\n\n",
        format::counted(threads as u64, "thread")
    );
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("fastest, from so many elements on", Align::Left),
    ]);
    for Choices { operation, steps } in &summary.choices {
        let steps = steps.iter().map(|step| match step.elements {
            0 => step.engine.to_string(),
            from => format!("{} from {from}", step.engine),
        });
        table.row([operation.to_string(), steps.collect::<Vec<_>>().join(", ")]);
    }
    text += &table.render();
    if let Some(check) = &summary.check {
        text += &check.people();
    }
    text + &format!(
        "\nwrote {}\n{} s\n",
        summary.file.display(),
        format::significant(summary.seconds)
    )
}

#[derive(Debug, Serialize)]
struct Removed<'a> {
    file: &'a Path,
    removed: bool,
}

fn reset(arguments: &Arguments, file: &Path) -> Result<(), Failure> {
    let removed = match fs::remove_file(file) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(Failure::io(file, "remove", &error)),
    };
    if arguments.json {
        return output::json(&Removed { file, removed });
    }
    let what = if removed { "removed" } else { "there is no" };
    output::text(&format!(
        "{what} {}; built-in costs apply\n",
        file.display()
    ))
}

#[derive(Debug, Serialize)]
struct Drawn<'a> {
    file: Option<PathBuf>,
    drawn: &'a Path,
    origin: &'a str,
}

fn show(arguments: &Arguments, out: &Path, settings: Settings) -> Result<(), Failure> {
    let file = tune::path(&settings.tuning);
    let inputs: Vec<&Path> = file.iter().map(PathBuf::as_path).collect();
    let to = Destination {
        path: out,
        inputs: &inputs,
        overwrite: arguments.force,
    };
    to.check(&["svg", "html", "htm"])?;
    let dispatcher = dispatcher(settings);
    let Key {
        processor, threads, ..
    } = Key::here();
    let line = format!(
        "{processor}, {}; {}",
        format::counted(threads as u64, "thread"),
        dispatcher.origin()
    );
    let page = tune::curves(dispatcher.costs(), "What operations cost", &line);
    page.write(to)?;
    if arguments.json {
        return output::json(&Drawn {
            file,
            drawn: out,
            origin: dispatcher.origin(),
        });
    }
    output::text(&format!(
        "wrote {} ({})\n",
        out.display(),
        dispatcher.origin()
    ))
}

/// The file of costs in the report of `tercet info`.
#[derive(Debug, Serialize)]
pub(crate) struct File {
    /// Its path, whether or not it exists; `None` if no file is wanted.
    file: Option<PathBuf>,
    /// The day it was made; `None` if there is no usable file.
    made: Option<String>,
    /// The measured device.
    device: Option<String>,
    /// Why it is not used; `None` if it is used or does not exist.
    refused: Option<String>,
}

impl File {
    /// Returns the state of the file.
    pub(crate) fn here() -> Result<Self, Failure> {
        let settings = Settings::with_wish(Preference::Any)?;
        let file = tune::path(&settings.tuning);
        let mut found = Self {
            file: file.clone(),
            made: None,
            device: None,
            refused: None,
        };
        match file.as_deref().map_or(Ok(None), Tuning::read) {
            Ok(None) => {}
            Ok(Some(tuning)) => (found.made, found.device) = (Some(tuning.made), tuning.device),
            Err(error) => found.refused = Some(error.to_string()),
        }
        Ok(found)
    }

    pub(crate) fn words(&self) -> String {
        match (&self.file, &self.made, &self.refused) {
            (None, ..) => "none: built-in costs".to_owned(),
            (Some(file), Some(made), _) => format!("{}, made on {made}", file.display()),
            (_, _, Some(reason)) => format!("not used: {reason}"),
            (Some(file), ..) => format!("none at {}: `tercet tune` makes it", file.display()),
        }
    }
}
