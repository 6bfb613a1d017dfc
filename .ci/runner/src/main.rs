//! Runs the steps of `.ci/steps`, two at a time, and says what each took: the program behind `.ci/test`.
//!
//! A step is `.ci/steps/NAME.sh`; what follows a colon in its name is the script's argument. Its output goes to
//! `target/ci/NAME.log` and is shown if the step fails. The exit status is 0 if every step passed, 1 if one failed, 2
//! if no such step is there, and 130 if the run was interrupted.

mod boards;
mod child;
mod listed;
mod report;
mod schedule;
mod seconds;
mod steps;
mod targets;
mod tokens;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
.ci/test [STEP…]

  .ci/test               every step
  .ci/test quick         format, lints, the workspace's tests and this machine's conformance: before each commit
  .ci/test fmt fuzz      these steps; `board` means every `board:…`, `board:an386` one of them
  .ci/test list          names the steps
  .ci/test seconds       keeps the seconds of the last run of every step as those that later runs are compared with
  .ci/test listed        checks that the workflow and README.md's table of targets have the same steps and targets as .ci

TERCET_REQUIRE=all makes a step that lacks a tool fail instead of being skipped. TERCET_LANES is how many steps run at a time (2).";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(Path::new("."), &words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the words say in the repository at `root`; whether all of it passed.
fn run(root: &Path, words: &[String]) -> Result<bool, String> {
    let targets = targets::read(&root.join(".ci/targets.txt"))?;
    let steps = steps::all(&boards::read(&root.join("firmware/boards"))?, &targets);
    match words {
        [word] if word == "help" || word == "--help" || word == "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        [word] if word == "list" => {
            for step in &steps {
                println!("{}", step.name);
            }
            Ok(true)
        }
        [word] if word == "seconds" => seconds::keep(root),
        [word] if word == "listed" => {
            let wrong = listed::check(root, &steps, &targets)?;
            for line in &wrong {
                println!("{line}");
            }
            Ok(wrong.is_empty())
        }
        words => {
            let chosen = steps::choose(&steps, words)?;
            schedule::run(root, &chosen, words.is_empty())
        }
    }
}
