//! Reports of a run: lines for people or machines, a bar on a terminal, and curves.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use tercet_host::language::Cost;
use tercet_host::measure::peak_resident;
use tercet_host::points::Destination;
use tercet_host::report::{Curves, Line, Panel};
use tercet_host::train::{StepReport, Verdict};

use super::begun::Begun;
use crate::advice::quoted;
use crate::failure::Failure;
use crate::{format, output};

#[derive(Debug, Serialize)]
struct Stepped {
    step: u64,
    loss: i64,
    targets: u64,
    mean: f64,
    rate: f32,
    norm: f64,
    tokens_per_second: f64,
    memory: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Evaluated {
    evaluated: u64,
    sum: i64,
    count: u64,
    bytes: u64,
    mean: f64,
    bits_per_byte: f64,
    verdict: Option<&'static str>,
}

/// The end of a run.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    pub(super) done: u64,
    pub(super) kept: Option<u64>,
    pub(super) file: Option<String>,
    pub(super) digest: Option<String>,
    pub(super) bytes: u64,
    pub(super) memory: Option<u64>,
    pub(super) seconds: f64,
}

/// The reporter of a run.
pub(super) struct Told {
    json: bool,
    bar: ProgressBar,
    start: Instant,
    /// The steps of this run: it begins after the first number and ends after the last.
    range: Range<u64>,
    /// Nats per token by step, and bits per byte of the held-out text.
    steps: Vec<(f64, f64)>,
    evaluations: Vec<(f64, f64)>,
    last: String,
}

/// Returns the cost of the held-out text in words.
fn held_out(cost: &Cost) -> String {
    format!(
        "held out {:.4} bits per byte, perplexity {}",
        cost.bits_per_byte(),
        format::significant(cost.perplexity())
    )
}

impl Told {
    /// Returns the reporter of a run of `range` among all `steps`.
    pub(super) fn new(json: bool, steps: u64, range: Range<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{bar:30} {pos:>5} / {len}  {eta:>5} left  {wide_msg}");
        bar.set_position(range.start);
        Self {
            json,
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            },
            start: Instant::now(),
            range,
            steps: Vec::new(),
            evaluations: Vec::new(),
            last: String::new(),
        }
    }

    pub(super) fn begun(&self, begun: &Begun) -> Result<(), Failure> {
        if self.json {
            return output::json_line(begun);
        }
        output::text(&begun.lines())
    }

    pub(super) fn step(&mut self, report: &StepReport) -> Result<(), Failure> {
        let done = (report.step - self.range.start) * report.targets;
        let speed = done as f64 / self.start.elapsed().as_secs_f64();
        self.steps.push((report.step as f64, report.mean()));
        self.bar.set_position(report.step);
        let memory = peak_resident();
        self.bar.set_message(format!(
            "{:.3} nats per token, {}{:.0} tokens/s{}",
            report.mean(),
            self.last,
            speed,
            memory.map_or_else(String::new, |bytes| format!(", {}", format::bytes(bytes))),
        ));
        if !self.json {
            return Ok(());
        }
        output::json_line(&Stepped {
            step: report.step,
            loss: report.loss,
            targets: report.targets,
            mean: report.mean(),
            rate: report.rate,
            norm: report.norm,
            tokens_per_second: speed,
            memory,
        })
    }

    /// Reports the result of an evaluation before the first step.
    pub(super) fn rounded(&mut self, cost: &Cost) -> Result<(), Failure> {
        let line = format!("step      0: only rounded; {}\n", held_out(cost));
        self.result(0, cost, None, &line)
    }

    /// Reports the result of an evaluation and, if it was due, its consequence.
    pub(super) fn evaluated(
        &mut self,
        step: u64,
        cost: &Cost,
        verdict: Option<Verdict>,
    ) -> Result<(), Failure> {
        let held_out = held_out(cost);
        let recent = &self.steps[self.steps.len().saturating_sub(20)..];
        let mean = recent.iter().map(|(_, mean)| mean).sum::<f64>() / recent.len().max(1) as f64;
        let line = format!(
            "step {step:>6}: {mean:.4} nats per token; {held_out}; {}{}{}\n",
            format::lasting(self.seconds()),
            self.left(step)
                .filter(|_| verdict != Some(Verdict::Over))
                .map_or_else(String::new, |left| {
                    format!(", about {} left", format::lasting(left))
                }),
            match verdict {
                None | Some(Verdict::Best) => "",
                Some(Verdict::Waited(_)) => "; not the best",
                Some(Verdict::Halved) => "; not the best, so the learning rate is halved",
                Some(Verdict::Over) => "; not the best, so the run ends",
            },
        );
        self.result(step, cost, verdict, &line)
    }

    /// Keeps the result of an evaluation, and prints it: as JSON, or else the line.
    fn result(
        &mut self,
        step: u64,
        cost: &Cost,
        verdict: Option<Verdict>,
        line: &str,
    ) -> Result<(), Failure> {
        self.evaluations
            .push((step.max(1) as f64, cost.bits_per_byte()));
        self.last = format!("{:.4} bits per byte held out, ", cost.bits_per_byte());
        if self.json {
            return output::json_line(&Evaluated {
                evaluated: step,
                sum: cost.sum,
                count: cost.count,
                bytes: cost.bytes,
                mean: cost.mean(),
                bits_per_byte: cost.bits_per_byte(),
                verdict: verdict.map(|verdict| match verdict {
                    Verdict::Best => "best",
                    Verdict::Waited(_) => "waited",
                    Verdict::Halved => "halved",
                    Verdict::Over => "over",
                }),
            });
        }
        self.bar.suspend(|| output::text(line))
    }

    /// Returns the seconds that the steps after `step` take if they take as long as those before it; `None` if no step
    /// is left.
    fn left(&self, step: u64) -> Option<f64> {
        let left = self.range.end.checked_sub(step).filter(|&left| left > 0)?;
        let done = step.saturating_sub(self.range.start).max(1);
        Some(self.seconds() * left as f64 / done as f64)
    }

    pub(super) fn done(&self, done: &Done) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        if self.json {
            return output::json_line(done);
        }
        let (Some(file), Some(digest), Some(kept)) = (&done.file, &done.digest, done.kept) else {
            let line = format!("stopped after step {}; --resume continues\n", done.done);
            return output::text(&line);
        };
        output::text(&format!(
            "{file}: {}, digest {digest}, {} steps in {} s{}{}\ntry: tercet generate {} -p \"The \" --temp 0.8\n",
            format::bytes(done.bytes),
            done.done,
            format::significant(done.seconds),
            match kept == done.done {
                true => String::new(),
                false => format!(", as it was after step {kept}"),
            },
            match done.memory {
                Some(bytes) => format!(", {} of memory", format::bytes(bytes)),
                None => String::new(),
            },
            quoted(file),
        ))
    }

    /// Returns the seconds since the beginning.
    pub(super) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Writes the curves; nothing for a run that was already complete when it was resumed.
    pub(super) fn report(&self, path: &Path, line: String) -> Result<(), Failure> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let panel = |name: &str, points: &[(f64, f64)]| Panel {
            name: name.to_owned(),
            below: "steps",
            lines: vec![Line {
                name: String::new(),
                points: points.to_vec(),
            }],
            marks: Vec::new(),
        };
        let page = Curves {
            title: "Training".to_owned(),
            line,
            up: "cost",
            names: ["what", "line"],
            panels: vec![
                panel("training, nats per token", &self.steps),
                panel("held out, bits per byte", &self.evaluations),
            ],
        }
        .page();
        page.write(Destination {
            path,
            inputs: &[],
            overwrite: true,
        })?;
        Ok(())
    }
}
