//! One program on one board, from the build to the verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tercet_firmware_runner::needs::Search;

use crate::boards::Board;
use crate::budget::{self, Standing};
use crate::figures::{Figures, over_limits};
use crate::programs::{self, Program};
use crate::report::Report;
use crate::run::{Ending, Run, run};
use crate::{build, image, snapshot};

/// The program to run, and the checks of its result.
#[derive(Debug)]
pub struct Session {
    /// The board's name.
    pub board: String,
    /// The program's name; with an image, any name.
    pub program: String,
    /// An image that is already built.
    pub image: Option<PathBuf>,
    /// Maximum time that the program may run.
    pub limit: Duration,
    /// The file that its output is compared with.
    pub snapshot: Option<PathBuf>,
    /// True if its figures are compared with the board's.
    pub budget: bool,
    /// True if these two files are renewed instead.
    pub overwrite: bool,
    /// True if the report is printed as JSON.
    pub json: bool,
}

/// The exit status of a program that the time limit stopped, the same as that of `timeout`.
const TIME_LIMIT: u8 = 124;

/// Carries out a plan and returns the exit status.
///
/// # Errors
/// Something is missing, nothing could be built or run, or the output cannot be judged.
pub fn session(firmware: &Path, plan: &Session) -> Result<u8, String> {
    let board = Board::read(firmware, &plan.board)?;
    let program = match &plan.image {
        // Only listed programs have committed figures.
        Some(_) if !plan.budget => programs::of_image(firmware, &plan.program)?,
        _ => programs::find(firmware, &plan.program)?,
    };
    let mut needs = Search::new(firmware);
    if plan.image.is_none() {
        needs.target(&board.target, &board.config);
    }
    if let Some(emulator) = board.runner.first() {
        needs.emulator(emulator);
    }
    needs.end()?;
    let path = match &plan.image {
        Some(path) => path.clone(),
        None => build::build(firmware, &board, &program)?,
    };
    let image = Image::read(&path, &program).map_err(|error| match plan.image {
        Some(_) if !program.rules.data.is_empty() => format!(
            "{error}; an image of another program than {} needs another name",
            program.name
        ),
        _ => error,
    })?;
    let run = run(&runner(&board, &program), &path, plan.limit, |line| {
        if !plan.json {
            println!("{line}");
        }
    })?;
    let mut figures = image.figures.clone();
    figures.take_printed(&run.lines);
    let mut report = Report::new(&board, &program, &image.compiler, &run, &figures);
    report.broken(&image.violations);
    if run.ending == Ending::Status(0) {
        report.broken(&over_limits(&program.rules.limits, &figures));
        judge(firmware, plan, &image.compiler, &run, &figures, &mut report)?;
    }
    if plan.json {
        println!("{}", report.json());
    }
    eprint!("{}", report.text());
    Ok(match run.ending {
        Ending::Status(0) => u8::from(report.is_broken()),
        Ending::Status(status) => status,
        Ending::TimeLimit(_) => TIME_LIMIT,
    })
}

/// Facts about an image before it runs.
struct Image {
    compiler: String,
    figures: Figures,
    violations: Vec<String>,
}

impl Image {
    fn read(path: &Path, program: &Program) -> Result<Self, String> {
        let wrong = |error: &str| format!("{}: {error}", path.display());
        let bytes = fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let file = object::File::parse(&*bytes).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self {
            compiler: image::compiler(&file).unwrap_or_else(|| "an unknown compiler".to_owned()),
            figures: image::sizes(&file, &program.rules.data).map_err(|error| wrong(&error))?,
            violations: image::violations(&file, &program.rules.without)
                .map_err(|error| wrong(&error))?,
        })
    }
}

/// Returns the board's runner. If the program counts, 128 ns of the board's time pass with every instruction.
fn runner(board: &Board, program: &Program) -> Vec<String> {
    let mut runner = board.runner.clone();
    if program.rules.counts {
        runner.splice(1..1, ["-icount", "shift=7"].map(str::to_owned));
    }
    runner
}

fn judge(
    firmware: &Path,
    plan: &Session,
    compiler: &str,
    run: &Run,
    figures: &Figures,
    report: &mut Report,
) -> Result<(), String> {
    if let Some(file) = &plan.snapshot {
        if plan.overwrite {
            snapshot::overwrite(file, &run.lines)?;
            report.note(format!("renewed {}", file.display()));
        } else if let Err(difference) = snapshot::compare(file, &run.lines) {
            let renew = "--overwrite (or TERCET_OVERWRITE=1) renews it";
            report.broken(&[format!(
                "the output is not the committed one:\n{difference}{renew}"
            )]);
        }
    }
    if plan.budget {
        let file = budget::file(firmware, &plan.board.replace(':', "-"));
        let program = &plan.program;
        if plan.overwrite {
            let lost = budget::renew(&file, program, compiler, figures)?;
            report.note(format!("renewed {}", file.display()));
            if !lost.is_empty() {
                let lost = lost.join(", ");
                report.note(format!("which lost what another compiler had made: {lost}"));
            }
            return Ok(());
        }
        match budget::check(&file, program, compiler, figures)? {
            Standing::Compared(comparison) => {
                report.broken(&comparison.grown);
                for line in comparison.shrunk {
                    report.note(format!("{line}; --budget --overwrite renews it"));
                }
            }
            Standing::OtherCompiler(other) => report.note(format!(
                "growth is not judged: {} is of {other}, this image of {compiler}",
                file.display()
            )),
        }
    }
    Ok(())
}
