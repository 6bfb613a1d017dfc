//! Explains a choice: every candidate, its predicted time, and why it lost.

use std::fmt;

use serde::Serialize;

use super::choose::{Candidate, Exclusion, OPENING, Ranking};
use super::{Bound, Engine, Job, Prediction};

/// An explained choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job: Job,
    /// The chosen engine; `None` if no engine can do the job.
    pub chosen: Option<Engine>,
    /// Every engine: the chosen one first, then by predicted time.
    pub candidates: Vec<Reason>,
    /// Source of the costs.
    pub costs: String,
    /// The instruction set of the engines `simd` and `threads`.
    pub backend: &'static str,
}

/// What an explanation says beside the ranking.
pub(super) struct Told<'a> {
    pub(super) costs: &'a str,
    pub(super) backend: &'static str,
    /// Why there is no device.
    pub(super) missing: Option<&'a str>,
}

/// The facts about one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The engine.
    pub engine: Engine,
    /// Its predicted time; `None` if no cost is known.
    pub prediction: Option<Prediction>,
    /// The total of that, in seconds.
    pub seconds: Option<f64>,
    /// The largest part of that.
    pub bound: Option<Bound>,
    /// The same of both phases of a call with two ([`Job::before`]), in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<[Prediction; 2]>,
    /// For a call that repeats its job: in how many times the engine would take less than the chosen one, if it needs more
    /// than the call has. That takes a first phase, or a device that is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_from: Option<u64>,
    /// Why it was chosen, or was not.
    pub why: String,
}

impl Explanation {
    pub(super) fn new(job: &Job, ranking: &Ranking, tolerance: f64, told: &Told<'_>) -> Self {
        let best = ranking.candidates.iter().filter(|it| it.out.is_none());
        let best = best
            .filter_map(|it| it.prediction)
            .map(|it| it.total())
            .fold(f64::INFINITY, f64::min);
        let chosen = ranking.chosen;
        let of_chosen = chosen.and_then(|engine| ranking.predicted(engine));
        let taking =
            chosen.and_then(|engine| ranking.candidates.iter().find(|it| it.engine == engine));
        let mut candidates: Vec<Reason> = (ranking.candidates.iter())
            .map(|candidate| {
                // A device that is not there takes no time.
                let there = candidate.out != Some(Exclusion::Missing);
                let prediction = candidate.prediction.filter(|_| there);
                let seconds = prediction.map(|it| it.total());
                let taken = Some(candidate.engine) == chosen;
                let mut why = match candidate.out {
                    _ if taken => won(seconds, best, tolerance),
                    Some(out) => lost_by(out, told.missing),
                    None => lost(prediction, of_chosen, tolerance),
                };
                let pays_from = taking.and_then(|taking| pays_from(job, candidate, taking));
                if let Some(times) = pays_from {
                    why += &format!("; pays from {times} {} on", job.unit);
                }
                Reason {
                    engine: candidate.engine,
                    prediction,
                    seconds,
                    bound: prediction.map(|it| it.bound()),
                    phases: candidate.phases.filter(|_| there),
                    pays_from,
                    why,
                }
            })
            .collect();
        candidates.sort_by(|a, b| {
            let key = |it: &Reason| (Some(it.engine) != chosen, it.seconds.unwrap_or(f64::MAX));
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        Self {
            job: *job,
            chosen,
            candidates,
            costs: told.costs.to_owned(),
            backend: told.backend,
        }
    }
}

/// Returns in how many times of the job a candidate would take less than the chosen one, if these are more than the job
/// has.
fn pays_from(job: &Job, candidate: &Candidate, chosen: &Candidate) -> Option<u64> {
    let opening = match candidate.out {
        None => 0.0,
        Some(Exclusion::Unopened(_)) => OPENING,
        Some(_) => return None,
    };
    // Seconds at the beginning, and for each of the times.
    let line = |it: &Candidate| {
        let whole = it.prediction?;
        let [first, own] = it.phases.unwrap_or([Prediction::default(), whole]);
        (job.times > 0).then(|| (first.total(), own.total() / job.times as f64))
    };
    let ((begin, each), (least, taken)) = (line(candidate)?, line(chosen)?);
    if each >= taken {
        return None;
    }
    let times = ((begin + opening - least) / (taken - each)).ceil();
    // Nobody has a use for more.
    (times > job.times as f64 && times < 1e9).then_some(times as u64)
}

fn won(seconds: Option<f64>, best: f64, tolerance: f64) -> String {
    match seconds {
        Some(seconds) if seconds > best * (1.0 + tolerance) => {
            format!("chosen: preferred, at {:.2} times the best", seconds / best)
        }
        Some(seconds) if seconds > best => {
            "chosen: about as fast as the fastest, and first in order".into()
        }
        Some(_) => "chosen: the fastest".into(),
        None => "chosen: it can do every call".into(),
    }
}

fn lost(prediction: Option<Prediction>, chosen: Option<Prediction>, tolerance: f64) -> String {
    let (Some(prediction), Some(chosen)) = (prediction, chosen) else {
        return "its time is not known".into();
    };
    let (seconds, least) = (prediction.total(), chosen.total());
    if seconds <= least * (1.0 + tolerance) {
        return "about as fast, but later in order".into();
    }
    let part = if prediction.is_of_items() {
        "items"
    } else {
        prediction.bound().name()
    };
    format!("{:.1} times as long, mostly {part}", seconds / least)
}

fn lost_by(out: Exclusion, missing: Option<&str>) -> String {
    match out {
        Exclusion::Profile => "not in this profile".into(),
        Exclusion::Forced(engine) => format!("the call asks for {engine}"),
        Exclusion::Override(engine) => format!("the operation is set to {engine}"),
        Exclusion::Preference => "another backend was asked for".into(),
        Exclusion::NoCost => "its time is not known".into(),
        Exclusion::TooSmall(least) => format!("fewer than {least} elements"),
        Exclusion::OutOfReach => "the data lies on the device".into(),
        Exclusion::NoStep => "the device has no kernel for it".into(),
        Exclusion::Tiled => "files are read, coded and written by all threads".into(),
        Exclusion::Missing => match missing {
            Some(reason) => format!("there is no device: {reason}"),
            None => "there is no device".into(),
        },
        Exclusion::GivenUp => "the device has stopped working".into(),
        Exclusion::Failed => "it failed in this call".into(),
        Exclusion::Unopened(saved) => format!(
            "not open: opening takes {OPENING} s, and calls so far would have saved {}",
            time(saved)
        ),
    }
}

/// Formats seconds in a suitable unit.
pub(super) fn time(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        ..=0.0 => return "0".into(),
        ..1e-6 => (1e9, "ns"),
        ..1e-3 => (1e6, "µs"),
        ..1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let value = seconds * scale;
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Writes the amounts of a job.
fn write_job(f: &mut fmt::Formatter<'_>, job: &Job) -> fmt::Result {
    let Job {
        operation,
        elements,
        work,
        items,
        held,
        times,
        unit,
        ..
    } = job;
    let bytes = job.bytes();
    write!(
        f,
        "{operation}: {elements} elements, {bytes} bytes, {work} steps"
    )?;
    if *items > 0 {
        write!(f, ", {items} items")?;
    }
    if *held > 0 {
        write!(f, ", {held} bytes on the device")?;
    }
    if *times != 1 {
        write!(f, ", {times} {unit}")?;
    }
    Ok(())
}

/// A line with the job, after one with what it does first, and an aligned table.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.job.before.map(|before| before.job(self.job.place));
        if let Some(before) = &before {
            f.write_str("first ")?;
            write_job(f, before)?;
            f.write_str("\nthen ")?;
        }
        write_job(f, &self.job)?;
        writeln!(f, "; {}", self.costs)?;
        let heads = [
            "engine",
            "predicted",
            "launch",
            "items",
            "transfer",
            "memory",
            "compute",
            "why",
        ];
        let row = |name: String, prediction: Option<&Prediction>, why: &str| {
            let part = |part: fn(&Prediction) -> f64| {
                prediction.map_or_else(|| "-".into(), |it| time(part(it)))
            };
            [
                name,
                part(Prediction::total),
                part(|it| it.launch),
                part(|it| it.items),
                part(|it| it.transfer),
                part(|it| it.memory),
                part(|it| it.compute),
                why.to_owned(),
            ]
        };
        let mut rows: Vec<[String; 8]> = Vec::new();
        for reason in &self.candidates {
            let name = match reason.engine {
                Engine::Simd | Engine::Threads => format!("{} ({})", reason.engine, self.backend),
                engine => engine.name().into(),
            };
            rows.push(row(name, reason.prediction.as_ref(), &reason.why));
            if let (Some([first, own]), Some(before)) = (&reason.phases, &before) {
                rows.push(row(format!("  {}", before.operation), Some(first), ""));
                rows.push(row(format!("  {}", self.job.operation), Some(own), ""));
            }
        }
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                let cells = rows.iter().map(|row| row[column].chars().count());
                cells.max().unwrap_or(0).max(heads[column].len())
            })
            .collect();
        let heads = heads.map(String::from);
        for row in std::iter::once(&heads).chain(&rows) {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
                // Words are left-aligned, numbers right-aligned.
                match column {
                    0 => line.extend([cell, &*blanks]),
                    7 => line.extend(["  ", cell]),
                    _ => line.extend(["  ", &*blanks, cell]),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
