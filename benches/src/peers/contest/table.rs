//! Writes rows as tables.

use serde_json::{Value, json};
use std::fmt::Write;

/// Measurements of one case with some number of threads.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub name: String,
    /// Threads of Tercet, and of the peers that use threads.
    pub threads: usize,
    /// Units of work per run.
    pub work: f64,
    /// Name of the unit.
    pub unit: &'static str,
    /// Tercet's best time of a run, in seconds.
    pub seconds: f64,
    /// Peers, their best times, and the part of their answers that is the same. If the case has steps, a time is a
    /// difference of two times; on a busy machine it may be below 0, and then there is no ratio.
    pub peers: Vec<(String, f64, String)>,
    /// Peers that were not timed because their answer is different, and the difference.
    pub refused: Vec<(String, String)>,
}

impl Row {
    /// Returns a peer's time divided by Tercet's: above 1 Tercet is faster.
    fn ratio(&self, seconds: f64) -> Option<f64> {
        (seconds > 0.0 && self.seconds > 0.0).then(|| seconds / self.seconds)
    }
}

/// Returns one table in Markdown with aligned columns: a line for each peer of each case.
pub fn table(rows: &[Row]) -> String {
    let head = [
        "work",
        "threads",
        "peer",
        "peer ÷ Tercet",
        "Tercet ms",
        "peer ms",
        "Tercet G/s",
        "of",
        "equal work",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        let rate = row.work / row.seconds / 1e9;
        let none = [("".to_owned(), f64::NAN, "".to_owned())];
        let peers = if row.peers.is_empty() {
            &none[..]
        } else {
            &row.peers
        };
        for (peer, seconds, same) in peers {
            let ratio = row.ratio(*seconds);
            lines.push([
                row.name.clone(),
                row.threads.to_string(),
                peer.clone(),
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                milliseconds(row.seconds),
                milliseconds(*seconds),
                format!("{rate:.2}"),
                row.unit.into(),
                same.clone(),
            ]);
        }
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let numbers = [1, 3, 4, 5, 6];
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let _ = match numbers.contains(&column) {
                true => write!(text, "| {cell:>width$} "),
                false => write!(text, "| {cell:<width$} "),
            };
        }
        text += "|\n";
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if numbers.contains(&column) { ":" } else { "-" };
                let _ = write!(text, "|{}{end}", "-".repeat(width + 1));
            }
            text += "|\n";
        }
    }
    for row in rows {
        for (peer, why) in &row.refused {
            let _ = writeln!(
                text,
                "\n{}, {} threads: {peer} is not timed, its answer is another: {why}",
                row.name, row.threads
            );
        }
    }
    text
}

fn milliseconds(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms.is_nan() || ms <= 0.0 => String::new(),
        ms if ms < 1.0 => format!("{ms:.4}"),
        ms if ms < 100.0 => format!("{ms:.2}"),
        ms => format!("{ms:.0}"),
    }
}

/// Returns the rows as JSON.
pub fn json(rows: &[Row]) -> Value {
    let rows = rows.iter().map(|row| {
        let peers = row.peers.iter().map(|(peer, seconds, same)| {
            json!({"peer": peer, "seconds": seconds, "ratio": row.ratio(*seconds), "equal_work": same})
        });
        let refused = row.refused.iter();
        let refused = refused.map(|(peer, why)| json!({"peer": peer, "why": why}));
        json!({
            "work": row.name, "threads": row.threads, "units": row.work, "unit": row.unit, "seconds": row.seconds,
            "peers": peers.collect::<Vec<_>>(), "refused": refused.collect::<Vec<_>>(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(peers: Vec<(String, f64, String)>) -> Row {
        Row {
            name: "work".into(),
            threads: 2,
            work: 3e6,
            unit: "values",
            seconds: 0.001,
            peers,
            refused: vec![("other".into(), "codes".into())],
        }
    }

    #[test]
    fn a_ratio_is_the_peer_s_time_over_tercet_s_and_is_left_out_where_a_difference_is_not_above_0()
    {
        let rows = [row(vec![
            ("slow".into(), 0.004, "same codes".into()),
            ("noise".into(), -0.1, "same codes".into()),
        ])];
        let text = table(&rows);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(
            cells(lines[2])[1..8],
            ["work", "2", "slow", "4.00", "1.00", "4.00", "3.00"]
        );
        assert_eq!(cells(lines[3])[3..7], ["noise", "", "1.00", ""]);
        let widths: Vec<usize> = lines[..4].iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
        assert!(text.ends_with("other is not timed, its answer is another: codes\n"));
        assert_eq!(json(&rows)[0]["peers"][0]["ratio"], 4.0);
        assert!(json(&rows)[0]["peers"][1]["ratio"].is_null());
    }

    #[test]
    fn a_case_without_peers_keeps_its_line() {
        assert_eq!(table(&[row(Vec::new())]).lines().count(), 5);
    }
}
