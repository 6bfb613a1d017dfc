//! Times a step to tables.

use super::{Pool, Who};
use std::fmt::Write;

/// What was measured on one set of points.
#[derive(Clone, Debug)]
pub struct Row {
    /// The points.
    pub name: String,
    /// Products of a step: n · d · k.
    pub products: f64,
    /// Seconds a step of those who took part. A difference of two times, so on a busy machine it may be below 0;
    /// tables leave it out.
    pub times: Vec<(Who, Pool, f64)>,
    /// Tercet's inertia over scikit-learn's after as many steps.
    pub inertia: Option<f64>,
}

impl Row {
    fn time(&self, who: Who, pool: Pool) -> Option<f64> {
        let mut times = self.times.iter();
        let (_, _, time) = times.find(|time| (time.0, time.1) == (who, pool))?;
        Some(*time).filter(|&time| time > 0.0)
    }

    /// A peer's time over Tercet's with as many threads.
    fn ratio(&self, peer: Who, pool: Pool) -> Option<f64> {
        Some(self.time(peer, pool)? / self.time(Who::Tercet, pool)?)
    }
}

/// Tables of rows in Markdown: ratios, then milliseconds a step, then products a second.
pub fn page(rows: &[Row]) -> String {
    let mut ratios = Vec::new();
    for pool in Pool::ALL {
        for peer in [Who::ScikitLearn, Who::Faiss] {
            let values = rows.iter().map(|row| row.ratio(peer, pool));
            ratios.push(Column {
                head: format!("{pool}: {} ÷ Tercet", peer.name()),
                places: 2,
                values: values.collect(),
            });
        }
    }
    ratios.push(Column {
        head: "inertia: Tercet ÷ scikit-learn".into(),
        places: 5,
        values: rows.iter().map(|row| row.inertia).collect(),
    });
    let times = columns(rows, 2, |_, time| 1e3 * time);
    let rates = columns(rows, 1, |row, time| row.products / time / 1e9);
    format!(
        "{}\nMilliseconds a step:\n\n{}\nG multiply-accumulates a second, of n·d·k a step:\n\n{}",
        table(rows, &ratios),
        table(rows, &times),
        table(rows, &rates)
    )
}

/// A column for each contender, of what `value` makes of its times.
fn columns(rows: &[Row], places: usize, value: fn(&Row, f64) -> f64) -> Vec<Column> {
    let contenders = Who::ALL.map(|who| Pool::ALL.map(|pool| (who, pool)));
    let columns = contenders.into_iter().flatten().map(|(who, pool)| {
        let values = rows
            .iter()
            .map(|row| Some(value(row, row.time(who, pool)?)));
        Column {
            head: format!("{}, {pool}", who.name()),
            places,
            values: values.collect(),
        }
    });
    columns.collect()
}

/// Numbers under a head, one a row of the table; an absent one leaves its cell empty.
struct Column {
    head: String,
    places: usize,
    values: Vec<Option<f64>>,
}

fn table(rows: &[Row], columns: &[Column]) -> String {
    let mut table = String::from("| points |");
    for column in columns {
        let _ = write!(table, " {} |", column.head);
    }
    table += "\n|---|";
    table += &"--:|".repeat(columns.len());
    for (index, row) in rows.iter().enumerate() {
        let _ = write!(table, "\n| {} |", row.name);
        for column in columns {
            let _ = match column.values[index] {
                Some(value) => write!(table, " {value:.*} |", column.places),
                None => write!(table, " |"),
            };
        }
    }
    table + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_the_peers_times_over_tercets_and_what_is_no_time_stays_empty() {
        let row = Row {
            name: "4×2 k=2".into(),
            products: 16e9,
            times: vec![
                (Who::Tercet, Pool::One, 0.5),
                (Who::Tercet, Pool::All, 0.25),
                (Who::ScikitLearn, Pool::One, 2.0),
                (Who::ScikitLearn, Pool::All, 0.125),
                (Who::Faiss, Pool::One, -0.1),
            ],
            inertia: Some(1.00012),
        };
        let page = page(&[row]);
        let lines: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| 4×2"))
            .collect();
        assert_eq!(
            lines,
            [
                "| 4×2 k=2 | 4.00 | | 0.50 | | 1.00012 |",
                "| 4×2 k=2 | 500.00 | 250.00 | 2000.00 | 125.00 | | |",
                "| 4×2 k=2 | 32.0 | 64.0 | 8.0 | 128.0 | | |",
            ]
        );
    }
}
