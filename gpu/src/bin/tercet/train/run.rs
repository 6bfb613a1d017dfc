//! Runs the training.

use std::fs;
use std::path::Path;
use std::time::Instant;

use tercet_core::conformance::Digest;
use tercet_host::file::output::Output;
use tercet_host::measure::peak_resident;
use tercet_host::parallel::Threads;
use tercet_host::train::{Batches, Profiled, Trainer};

use super::Arguments;
use super::begun::{Adapters, Begun, Converted, TeacherCache};
use super::material::{Material, Worker};
use super::profile;
use super::texts::Texts;
use super::told::{Done, Told};
use crate::bottlenecks;
use crate::failure::Failure;
use crate::format;
use crate::interrupt::Answering;

/// Steps that are measured for --minutes, after an unmeasured one.
const MEASURED: u64 = 3;
/// The file in the folder of --checkpoint.
const CHECKPOINT: &str = "checkpoint.safetensors";

/// The files in the folder of --report.
const HELD_OUT: &str = "held-out.txt";
const REPORT: &str = "report.html";

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match bottlenecks::are_requested() {
        true => run_with(arguments, Profiled::new, |trainer| {
            profile::report(&trainer.profile());
        }),
        false => run_with(arguments, |engine| engine, |_| {}),
    }
}

/// Runs the training with an engine, and calls `after` when it ends, also if it is interrupted.
fn run_with<E: Worker>(
    arguments: &Arguments,
    engine: fn(Threads) -> E,
    after: fn(&Trainer<E>),
) -> Result<(), Failure> {
    // Refuse before the work, not after it.
    let Some(path) = &arguments.output else {
        return Err(Failure::usage("-o names the file to write"));
    };
    let output = Output::create(path, [], arguments.force)?;
    let file_name = path.display().to_string();
    let checkpoint = arguments
        .checkpoint
        .as_deref()
        .map(|folder| folder.join(CHECKPOINT));
    if let Some(path) = &checkpoint
        && path.exists()
        && !arguments.resume
        && !arguments.force
    {
        return Err(Failure::new(format_args!(
            "{}: exists already (--resume continues it, --force overwrites)",
            path.display()
        )));
    }
    if let Some(folder) = &arguments.report
        && !arguments.resume
        && !arguments.force
    {
        let written = [HELD_OUT, REPORT].map(|name| folder.join(name));
        if let Some(path) = written.iter().find(|path| path.exists()) {
            return Err(Failure::new(format_args!(
                "{}: exists already (--force overwrites)",
                path.display()
            )));
        }
    }
    let folders = [&arguments.checkpoint, &arguments.report, &arguments.offload];
    for folder in folders.into_iter().flatten() {
        fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
    }
    let texts = Texts::read(&arguments.data, arguments.hold)?;
    if let Some(folder) = &arguments.report {
        let mut output = Output::create(&folder.join(HELD_OUT), [], true)?;
        output.write(&texts.held_out)?;
        output.finish()?;
    }
    let material = Material::new(arguments, &texts)?;
    drop(texts);
    let steps = match (arguments.steps, arguments.minutes) {
        (Some(steps), _) => steps,
        (None, Some(minutes)) => measure(arguments, &material, minutes)?,
        (None, None) => 1000,
    };
    let options = arguments.options(steps, material.parameters);
    let mut trainer = material.trainer(arguments, &options, engine)?;
    if arguments.resume {
        let path = checkpoint.as_deref().unwrap_or(Path::new(CHECKPOINT));
        trainer.resume(path, &material.corpus)?;
    }
    // Without a folder for saving, an interrupt ends the run at once.
    let answering = checkpoint.is_some().then(Answering::begin);
    let last = arguments.stop_after.unwrap_or(steps).min(steps);
    let before = match &arguments.from {
        Some(path) if trainer.is_converted() => Some(material.evaluate_file(path)?),
        _ => None,
    };
    let mut told = Told::new(arguments.json, steps, trainer.steps()..last);
    told.begun(&Begun {
        begun: trainer.steps(),
        parameters: options.parameters,
        tokens: material.corpus.tokens(),
        held_out_tokens: material.corpus.held_out().len(),
        steps,
        batch: options.batch,
        rate: options.rate,
        teacher: arguments
            .teacher
            .as_ref()
            .map(|path| path.display().to_string()),
        teacher_cache: trainer
            .answers()
            .map(|(sequences, bytes)| TeacherCache { sequences, bytes }),
        kept: material.kept.clone(),
        pruned: trainer.pruned().copied(),
        kept_heads: trainer.kept_heads().copied(),
        adapters: options.adapters.map(|rank| Adapters {
            rank,
            values: trainer.trained(),
        }),
        converted: before.as_ref().map(Converted::of),
    })?;
    if trainer.is_converted() && trainer.steps() == 0 {
        told.rounded(&material.evaluate(&trainer)?)?;
    }
    let batches = Batches::new(&material.corpus, options.batch, trainer.steps());
    while trainer.steps() < last && !trainer.is_over() {
        let report = trainer.step(&batches)?;
        told.step(&report)?;
        let is_due = options.watch.is_due(report.step, steps);
        let is_interrupted = answering.as_ref().is_some_and(Answering::is_over);
        if is_due || (report.step == last && !is_interrupted) {
            let cost = material.evaluate(&trainer)?;
            // An evaluation that other runs do not make must not decide anything.
            let verdict = is_due.then(|| trainer.watch(&cost));
            told.evaluated(report.step, &cost, verdict)?;
        }
        if let Some(path) = &checkpoint
            && (is_due || is_interrupted || report.step == last)
        {
            trainer.save(path, &material.corpus)?;
        }
        if is_interrupted {
            drop(told);
            after(&trainer);
            return Err(Failure::interrupted(format_args!(
                "interrupted after step {}; the same command with --resume{} continues",
                report.step,
                match arguments.minutes {
                    Some(_) => format!(", and --steps {steps} in place of --minutes,"),
                    None => String::new(),
                }
            )));
        }
    }
    drop(answering);
    after(&trainer);
    if let Some(folder) = &arguments.report {
        let name = match &arguments.from {
            Some(path) => format!("{}, trained on", path.display()),
            None => format!("{} model", arguments.preset().name()),
        };
        let line = format!("{name}, {} of {steps} steps", trainer.steps());
        told.report(&folder.join(REPORT), line)?;
    }
    let mut done = Done {
        done: trainer.steps(),
        kept: None,
        file: None,
        digest: None,
        bytes: 0,
        memory: peak_resident(),
        seconds: told.seconds(),
    };
    if trainer.is_over() {
        let file = trainer.export(arguments.to)?;
        let mut digest = Digest::new();
        digest.bytes(&file);
        let mut output = output;
        output.write(&file)?;
        done.bytes = output.finish()?;
        done.file = Some(file_name);
        done.digest = Some(format!("{:016x}", digest.value()));
        let best = trainer.best().filter(|_| arguments.patience.is_some());
        done.kept = Some(best.unwrap_or(done.done));
    }
    told.done(&done)
}

/// Returns the number of steps that fit the time, from the time of some steps, and reports when they should end.
fn measure(arguments: &Arguments, material: &Material, minutes: f64) -> Result<u64, Failure> {
    let options = arguments.options(1000, material.parameters);
    let mut trainer = material.trainer(arguments, &options, |engine| engine)?;
    let batches = Batches::new(&material.corpus, options.batch, 0);
    trainer.step(&batches)?;
    let start = Instant::now();
    for _ in 0..MEASURED {
        trainer.step(&batches)?;
    }
    let step = start.elapsed().as_secs_f64() / MEASURED as f64;
    let start = Instant::now();
    material.evaluate(&trainer)?;
    let evaluation = start.elapsed().as_secs_f64();
    // Evaluations take additional time: one every so many steps, or ten.
    let (each, all) = match arguments.every {
        Some(every) => (step + evaluation / every as f64, 0.0),
        None => (step, 10.0 * evaluation),
    };
    let steps = (((minutes * 60.0 - all) / each) as u64).max(1);
    eprintln!(
        "{}, about {}: an estimate from {MEASURED} steps of {step:.3} s and an evaluation of {evaluation:.3} s. \
         Other work on this machine makes it longer. --steps {steps} makes the same file.",
        format::counted(steps, "step"),
        format::lasting(each * steps as f64 + all)
    );
    Ok(steps)
}
