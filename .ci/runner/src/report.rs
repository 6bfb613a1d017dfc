//! What a run prints: a line for each step that ended, and the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::Ended;

/// The status by which automake and ctest, too, know a test that was skipped.
const SKIPPED: i32 = 77;
/// Lines of the log of a step that failed.
const TAIL: usize = 100;

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It lacked a tool.
    Skipped,
    /// It failed.
    Failed,
}

/// The verdict of a status; `strict` runs allow no skips.
pub fn verdict(status: i32, strict: bool) -> Verdict {
    match status {
        0 => Verdict::Passed,
        SKIPPED if !strict => Verdict::Skipped,
        _ => Verdict::Failed,
    }
}

/// A file of a step in `target/ci`, whose name has no colons, which Windows refuses.
pub fn file(logs: &Path, step: &str, ending: &str) -> PathBuf {
    logs.join(format!("{}.{ending}", step.replace(':', "-")))
}

/// The line of a step that ended after `wall`, and its log's last lines if it failed.
pub fn lines(logs: &Path, step: &str, ended: &Ended, wall: Duration, verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Passed => "ok",
        Verdict::Skipped => "skip",
        Verdict::Failed => "FAIL",
    };
    let processor = match ended.processor {
        Some(time) => format!("{:4} s CPU", time.as_secs()),
        None => String::new(),
    };
    let notes = fs::read_to_string(file(logs, step, "notes")).unwrap_or_default();
    let notes = notes.lines().collect::<Vec<_>>().join("; ");
    let line = format!(
        "{word:<4} {step:<42} {:4} s {processor}  {notes}",
        wall.as_secs()
    );
    let mut text = format!("{}\n", line.trim_end());
    if verdict == Verdict::Failed {
        let path = file(logs, step, "log");
        let log = fs::read(&path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let all: Vec<&str> = log.lines().collect();
        for line in &all[all.len().saturating_sub(TAIL)..] {
            text.push_str(&format!("    {line}\n"));
        }
        text.push_str(&format!("    (all of it: {})\n", path.display()));
    }
    text
}

/// The last lines of a run, of the steps that failed and the skips that were written down.
pub fn end(wall: Duration, passed: usize, failed: &[String], skips: &[String]) -> String {
    let mut text = format!("\n{} s\n", wall.as_secs());
    if !skips.is_empty() {
        text.push_str(&skips.join("\n"));
        text.push_str(
            "\nThe outside references: .ci/references. On Debian, .ci/run installs everything.\n",
        );
    }
    if !failed.is_empty() {
        let failed = failed.join(" ");
        text.push_str(&format!("failed: {failed}\nagain: .ci/test {failed}\n"));
    }
    text.push_str(&format!(
        "{passed} passed, {} failed, {} skipped\n",
        failed.len(),
        skips.len()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_a_failure_where_none_is_allowed() {
        assert_eq!(verdict(77, false), Verdict::Skipped);
        assert_eq!(verdict(77, true), Verdict::Failed);
        assert_eq!(verdict(1, false), Verdict::Failed);
    }

    #[test]
    fn a_step_that_fails_shows_the_end_of_its_log() {
        let logs = std::env::temp_dir().join(format!("tercet-ci-report-{}", std::process::id()));
        fs::create_dir_all(&logs).expect("a folder");
        let log: String = (0..=TAIL).map(|line| format!("line {line}\n")).collect();
        fs::write(file(&logs, "a:b", "log"), log).expect("a log");
        fs::write(file(&logs, "a:b", "notes"), "one\ntwo\n").expect("notes");
        let ended = Ended {
            status: 1,
            processor: Some(Duration::from_secs(3)),
        };
        let text = lines(
            &logs,
            "a:b",
            &ended,
            Duration::from_secs(9),
            Verdict::Failed,
        );
        fs::remove_dir_all(&logs).expect("nothing left");
        let mut text = text.lines();
        let first = text.next().unwrap_or_default();
        assert!(
            first.starts_with("FAIL a:b ") && first.ends_with("   9 s    3 s CPU  one; two"),
            "{first}"
        );
        assert_eq!(text.next(), Some("    line 1"));
    }

    #[test]
    fn the_end_names_what_to_run_again() {
        let failed = ["a:b".to_owned(), "c".to_owned()];
        let text = end(Duration::from_secs(5), 3, &failed, &[]);
        assert_eq!(
            text,
            "\n5 s\nfailed: a:b c\nagain: .ci/test a:b c\n3 passed, 2 failed, 0 skipped\n"
        );
    }
}
