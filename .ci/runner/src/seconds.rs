//! The seconds of every step, and which of them grew: `.ci/seconds.txt` has those of a whole run.
//!
//! Machines differ, so a step is compared with the others of its run: the median of what all take of their committed
//! seconds of the processor is the machine's, and a step that takes a fifth more than that grew.

use std::fs;
use std::path::Path;

/// The committed seconds.
const KEPT: &str = ".ci/seconds.txt";
/// Those of the last run of every step.
const LAST: &str = "target/ci/seconds.txt";
const HEAD: &str = "# A whole run on two cores, by `.ci/test seconds`: step, seconds of the clock, seconds of the processor.\n";
/// Fewer seconds than that are not compared: a link more or less is all they are.
const LEAST: f64 = 5.0;
/// Fewer steps have no median that is the machine's.
const STEPS: usize = 8;

/// A step's seconds, of the clock and of the processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The step.
    pub step: String,
    /// From its start to its end.
    pub wall: f64,
    /// What it took of the processor.
    pub processor: f64,
}

/// Writes what a whole run took.
///
/// # Errors
/// The file cannot be written.
pub fn write(root: &Path, rows: &[Row]) -> Result<(), String> {
    let mut text = HEAD.to_owned();
    for row in rows {
        text.push_str(&format!(
            "{} {:.0} {:.0}\n",
            row.step, row.wall, row.processor
        ));
    }
    let (wall, processor) = rows.iter().fold((0.0, 0.0), |(wall, processor), row| {
        (wall + row.wall, processor + row.processor)
    });
    text.push_str(&format!("# all {wall:.0} {processor:.0}\n"));
    let path = root.join(LAST);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes the seconds of the last whole run the committed ones.
///
/// # Errors
/// No step was ever run to the end of all, or a file cannot be written.
pub fn keep(root: &Path) -> Result<bool, String> {
    let text = fs::read_to_string(root.join(LAST))
        .map_err(|error| format!("{LAST}: {error}; a run of every step writes it"))?;
    fs::write(root.join(KEPT), text).map_err(|error| format!("{KEPT}: {error}"))?;
    Ok(true)
}

/// The committed seconds; none if there are no such.
pub fn kept(root: &Path) -> Vec<Row> {
    parse(&fs::read_to_string(root.join(KEPT)).unwrap_or_default())
}

/// A line for each step that grew beside the committed seconds.
pub fn grown(root: &Path, rows: &[Row]) -> Vec<String> {
    compare(&kept(root), rows)
}

fn parse(text: &str) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        Some(Row {
            step: words.next()?.to_owned(),
            wall: words.next()?.parse().ok()?,
            processor: words.next()?.parse().ok()?,
        })
    };
    lines.filter_map(row).collect()
}

fn compare(kept: &[Row], rows: &[Row]) -> Vec<String> {
    let both: Vec<(&Row, f64)> = rows
        .iter()
        .filter_map(|row| {
            let committed = kept.iter().find(|kept| kept.step == row.step)?.processor;
            (committed >= LEAST).then_some((row, committed))
        })
        .collect();
    if both.len() < STEPS {
        return Vec::new();
    }
    let mut shares: Vec<f64> = both
        .iter()
        .map(|(row, committed)| row.processor / committed)
        .collect();
    shares.sort_by(f64::total_cmp);
    let machine = shares[shares.len() / 2];
    let grew = |(row, committed): &(&Row, f64)| {
        let expected = committed * machine;
        (row.processor > 1.2 * expected).then(|| {
            format!(
                "grown: {} took {:.0} s CPU; by the committed {committed:.0} and this machine's pace it would be {expected:.0}",
                row.step, row.processor
            )
        })
    };
    both.iter().filter_map(grew).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: impl Fn(usize) -> f64) -> Vec<Row> {
        let row = |at: usize| Row {
            step: format!("s{at}"),
            wall: 1.0,
            processor: of(at),
        };
        (0..10).map(row).collect()
    }

    #[test]
    fn a_slower_machine_is_no_growth() {
        let kept = rows(|at| 10.0 + at as f64);
        assert_eq!(
            compare(&kept, &rows(|at| 2.0 * (10.0 + at as f64))),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_step_that_takes_a_fifth_more_than_the_others_is_seen() {
        let kept = rows(|_| 10.0);
        let found = compare(&kept, &rows(|at| if at == 3 { 25.0 } else { 20.0 }));
        let line =
            "grown: s3 took 25 s CPU; by the committed 10 and this machine's pace it would be 20";
        assert_eq!(found, [line]);
        assert!(compare(&kept, &rows(|at| if at == 3 { 23.0 } else { 20.0 })).is_empty());
    }

    #[test]
    fn short_and_unknown_steps_are_not_compared() {
        let kept = rows(|at| if at == 3 { 1.0 } else { 10.0 });
        assert!(compare(&kept, &rows(|at| if at == 3 { 9.0 } else { 10.0 })).is_empty());
        assert!(compare(&kept[..4], &rows(|_| 99.0)).is_empty());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = format!("{HEAD}a:b 12 34\n# all 12 34\n");
        let row = Row {
            step: "a:b".to_owned(),
            wall: 12.0,
            processor: 34.0,
        };
        assert_eq!(parse(&text), [row]);
    }
}
