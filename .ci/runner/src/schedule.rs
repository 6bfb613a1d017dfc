//! Runs steps side by side, two at a time: a step often keeps one core busy (linking, emulators, clocks).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::child::{self, Ended};
use crate::report::{self, Verdict};
use crate::seconds::{self, Row};
use crate::steps::Step;
use crate::tokens::Tokens;

/// What a run hears of.
enum News {
    /// A step ended, or could not be started or waited for.
    Ended(Step, Result<Ended, String>, Duration),
    /// Somebody wants the run to end.
    Interrupted,
}

/// Runs steps, prints what became of each, and writes down what they took if they are `whole`, all that there are;
/// whether all passed.
///
/// # Errors
/// `target/ci` cannot be written.
pub fn run(root: &Path, steps: &[Step], whole: bool) -> Result<bool, String> {
    let root = fs::canonicalize(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let logs = root.join("target/ci");
    clean(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    let strict = env::var("TERCET_REQUIRE").is_ok_and(|value| value == "all");
    let lanes = env::var("TERCET_LANES")
        .ok()
        .and_then(|text| text.parse().ok());
    let (sender, news) = channel();
    let interrupts = sender.clone();
    // A second interrupt finds a run that is ending already.
    ctrlc::set_handler(move || drop(interrupts.send(News::Interrupted)))
        .map_err(|error| error.to_string())?;
    let mut run = Run {
        root: &root,
        logs: &logs,
        names: steps.iter().map(|step| format!("{} ", step.name)).collect(),
        tokens: Tokens::new("tokens").map_err(|error| error.to_string())?,
        sender,
        news,
    };
    let started = Instant::now();
    let (mut passed, mut failed, mut rows) = (0, Vec::new(), Vec::new());
    run.all(steps, lanes.unwrap_or(2), |step, ended, wall| {
        let verdict = report::verdict(ended.status, strict);
        print!(
            "{}",
            report::lines(&logs, &step.name, &ended, wall, verdict)
        );
        match verdict {
            Verdict::Passed => passed += 1,
            Verdict::Skipped => {}
            Verdict::Failed => failed.push(step.name.clone()),
        }
        if let (Some(processor), Verdict::Passed) = (ended.processor, verdict) {
            rows.push(Row {
                step: step.name.clone(),
                wall: wall.as_secs_f64(),
                processor: processor.as_secs_f64(),
            });
        }
    })?;
    for line in seconds::grown(&root, &rows) {
        println!("{line}");
    }
    if whole && rows.len() == steps.len() {
        let place = |row: &Row| steps.iter().position(|step| step.name == row.step);
        rows.sort_by_key(place);
        seconds::write(&root, &rows)?;
    }
    print!(
        "{}",
        report::end(started.elapsed(), passed, &failed, &skips(&logs))
    );
    Ok(failed.is_empty())
}

/// An empty place for logs: notes and skips of an earlier run would be taken for this one's.
fn clean(logs: &Path) -> std::io::Result<()> {
    fs::create_dir_all(logs)?;
    for entry in fs::read_dir(logs)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|ending| ending == "notes" || ending == "skips")
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// What steps wrote down as skipped, each line once.
fn skips(logs: &Path) -> Vec<String> {
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(logs).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "skips") {
            let text = fs::read_to_string(path).unwrap_or_default();
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    lines.into_iter().collect()
}

/// A run under way.
struct Run<'a> {
    root: &'a Path,
    logs: &'a Path,
    /// All steps of the run, each with a space behind it.
    names: String,
    tokens: Tokens,
    sender: Sender<News>,
    news: Receiver<News>,
}

impl Run<'_> {
    /// Runs all steps, at most `lanes` at a time, and tells `ended` of each.
    fn all(
        &mut self,
        steps: &[Step],
        lanes: usize,
        mut ended: impl FnMut(&Step, Ended, Duration),
    ) -> Result<(), String> {
        let mut waiting = steps.to_vec();
        let kept = seconds::kept(self.root);
        let mut running: Vec<(Step, u32)> = Vec::new();
        while !(waiting.is_empty() && running.is_empty()) {
            while running.len() < lanes.max(1) {
                let busy: Vec<&str> = running.iter().map(|(step, _)| step.folder).collect();
                let Some(place) = next(&waiting, &busy, &kept) else {
                    break;
                };
                let step = waiting.remove(place);
                let id = self.start(&step)?;
                running.push((step, id));
            }
            self.tokens
                .leave(running.len())
                .map_err(|error| error.to_string())?;
            match self.news.recv() {
                Ok(News::Ended(step, result, wall)) => {
                    running.retain(|(other, _)| *other != step);
                    ended(&step, result?, wall);
                }
                Ok(News::Interrupted) | Err(_) => {
                    for (_, id) in &running {
                        child::end_group(*id);
                    }
                    self.tokens.remove();
                    std::process::exit(130);
                }
            }
        }
        Ok(())
    }

    /// Starts a step; a thread waits for its end and tells of it. The identity of its process.
    fn start(&self, step: &Step) -> Result<u32, String> {
        let (script, argument) = step.name.split_once(':').unwrap_or((&step.name, ""));
        let script: PathBuf = [".ci", "steps", &format!("{script}.sh")].iter().collect();
        let file = |ending| report::file(self.logs, &step.name, ending);
        let (notes, skips) = (file("notes"), file("skips"));
        let (tokens, pot) = self.tokens.environment();
        let environment = [
            ("TERCET_STEPS", self.names.as_ref()),
            ("TERCET_NOTES", notes.as_os_str()),
            ("TERCET_SKIPS", skips.as_os_str()),
            (tokens, pot.as_ref()),
        ];
        let from = Instant::now();
        let mut child = child::start(
            self.root,
            &script,
            argument,
            &environment,
            &step.name,
            &file("log"),
        )
        .map_err(|error| format!("{}: {error}", step.name))?;
        let id = child.id();
        let (sender, step) = (self.sender.clone(), step.clone());
        thread::spawn(move || {
            let ended = child::wait(&mut child).map_err(|error| format!("{}: {error}", step.name));
            // Nobody listens any more if the run was interrupted.
            sender.send(News::Ended(step, ended, from.elapsed())).ok();
        });
        Ok(id)
    }
}

/// Which of the steps that wait is next; `None` if every one has to wait for another of its folder.
///
/// The folder with the most committed seconds left comes first, so that the lanes end together, and in it the first
/// step. A step without such seconds, as all are before the first are committed, comes before those with.
fn next(waiting: &[Step], busy: &[&str], kept: &[Row]) -> Option<usize> {
    let seconds = |step: &Step| {
        let row = kept.iter().find(|row| row.step == step.name);
        row.map_or(f64::INFINITY, |row| row.wall)
    };
    let left = |step: &Step| match step.folder {
        _ if step.early => f64::INFINITY,
        "" => seconds(step),
        folder => waiting
            .iter()
            .filter(|other| other.folder == folder)
            .map(seconds)
            .sum(),
    };
    let free = |step: &Step| step.folder.is_empty() || !busy.contains(&step.folder);
    let mut best: Option<(usize, f64)> = None;
    for (place, step) in waiting.iter().enumerate().filter(|(_, step)| free(step)) {
        let left = left(step);
        if best.is_none_or(|(_, most)| left > most) {
            best = Some((place, left));
        }
    }
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(of: &[(&str, &'static str)]) -> Vec<Step> {
        let step = |&(name, folder): &(&str, &'static str)| Step {
            name: name.to_owned(),
            folder,
            early: name == "early",
            quick: false,
            part: false,
        };
        of.iter().map(step).collect()
    }

    #[test]
    fn two_steps_of_a_folder_do_not_run_at_a_time() {
        let waiting = steps(&[("a", "x"), ("b", "y"), ("c", "")]);
        assert_eq!(next(&waiting, &[], &[]), Some(0));
        assert_eq!(next(&waiting, &["x"], &[]), Some(1));
        assert_eq!(next(&waiting, &["x", "y"], &[]), Some(2));
        assert_eq!(next(&waiting[..2], &["x", "y"], &[]), None);
        assert_eq!(next(&[], &[], &[]), None);
    }

    #[test]
    fn the_folder_with_the_most_seconds_left_comes_first() {
        let waiting = steps(&[
            ("short", "x"),
            ("alone", ""),
            ("first", "y"),
            ("second", "y"),
        ]);
        let row = |(step, wall): (&str, f64)| Row {
            step: step.to_owned(),
            wall,
            processor: wall,
        };
        let kept = [
            ("short", 9.0),
            ("alone", 10.0),
            ("first", 4.0),
            ("second", 7.0),
        ]
        .map(row);
        assert_eq!(next(&waiting, &[], &kept), Some(2));
        assert_eq!(next(&waiting, &["y"], &kept), Some(1));
        // One that nobody has timed yet.
        assert_eq!(next(&waiting, &[], &kept[1..]), Some(0));
        let waiting = steps(&[("alone", ""), ("early", "")]);
        assert_eq!(next(&waiting, &[], &kept), Some(1));
    }
}
