//! `tercet tune --check`: measures how good and how stable the choices are.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::Serialize;
use tercet_gpu::dispatch::tune::{self, Agreement, Check, Key, Regret, TuneOptions, Tuning};
use tercet_gpu::dispatch::{Builder, Costs, Dispatcher, Engine, Operation, Settings};

use super::plain;
use crate::failure::Failure;
use crate::format;
use crate::table::{Align, Table};

/// Time per engine and point.
const POINT: Duration = Duration::from_millis(15);

/// The results of a check.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    regret: Check,
    agreement: Agreement,
    /// Extra seconds of a dispatched call over a direct one.
    overhead: f64,
    /// Seconds of each of the two tunings.
    tuned: [f64; 2],
}

impl Checked {
    /// Tunes again, and checks the choices of the first tuning, which took so many seconds.
    pub(super) fn of(
        settings: &Settings,
        options: &TuneOptions,
        first: &Tuning,
        seconds: f64,
        tell: &dyn Fn(Operation),
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        let second =
            tune::tune(&plain(settings), options, &mut |it| tell(it)).map_err(Failure::new)?;
        let tuned = [seconds, start.elapsed().as_secs_f64()];
        let with = |costs: &Costs| -> Dispatcher {
            let built = Builder::new(settings.clone()).costs(costs.clone());
            built.build()
        };
        let (dispatcher, other) = (with(&first.costs), with(&second.costs));
        if first.device.is_some() {
            // An engine that is not open is no candidate.
            for dispatcher in [&dispatcher, &other] {
                dispatcher.open().map_err(Failure::new)?;
            }
        }
        let overhead = tune::overhead(&dispatcher).map_err(Failure::new)?;
        let regret = tune::check(&dispatcher, POINT, &mut |it| tell(it)).map_err(Failure::new)?;
        Ok(Self {
            regret,
            agreement: tune::agreement(&dispatcher, &other),
            overhead,
            tuned,
        })
    }

    /// Summarizes the results in a line, without the points.
    fn summary(&self) -> String {
        let (regret, agreement) = (&self.regret, &self.agreement);
        format!(
            "{} of {} choices within 15 % of the best ({:.1} %)\n\
             {} of {} choices alike after a second tuning ({:.1} %)\n\
             a dispatched call takes {:.0} ns more than a direct one\n",
            regret.good,
            regret.points.len(),
            100.0 * regret.share,
            agreement.alike,
            agreement.points,
            100.0 * agreement.share,
            1e9 * self.overhead
        )
    }

    /// Formats how good the choices were: each operation, and the worst of all.
    pub(super) fn people(&self) -> String {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("operation", Left),
            ("points", Right),
            ("within 15 %", Right),
            ("alike", Right),
            ("worst", Right),
            ("at", Left),
        ]);
        for operation in Operation::ALL {
            table.row(self.row(operation));
        }
        format!("\n{}\n{}", table.render(), self.summary())
    }

    /// Formats an operation's points: their number, how many are good and alike, and the worst of them.
    fn row(&self, operation: Operation) -> [String; 6] {
        let points: Vec<&Regret> = (self.regret.points.iter())
            .filter(|point| point.operation == operation)
            .collect();
        let good = points.iter().filter(|point| point.is_good()).count();
        let others = self.agreement.others.iter();
        let others = others.filter(|other| other.operation == operation).count();
        let worst = points.iter().max_by(|a, b| a.regret.total_cmp(&b.regret));
        let (percent, at) = worst.map_or_else(Default::default, |worst| {
            let at = format!(
                "{} elements: {}, best {}",
                worst.elements, worst.chosen, worst.best
            );
            let percent = format!("{:.0} %", 100.0 * worst.regret);
            (
                percent,
                if worst.regret > 0.0 {
                    at
                } else {
                    String::new()
                },
            )
        });
        [
            operation.to_string(),
            points.len().to_string(),
            good.to_string(),
            points.len().saturating_sub(others).to_string(),
            percent,
            at,
        ]
    }

    /// Formats all of it as a page of Markdown, with the machine and the day.
    pub(super) fn markdown(&self, key: &Key, made: &str) -> String {
        let Key {
            version,
            processor,
            threads,
            system,
            sets,
        } = key;
        let [first, second] = self.tuned;
        let mut text = format!(
            "# The dispatcher's choices on {processor}, {}\n\n\
             {made}, tercet {version}, {system}, instruction sets {};\n\
             `tercet tune --check --report FILE`. Two tunings of {first:.1} s and {second:.1} s, then each engine timed\n\
             at each point in twelve rounds: the mean of the middle half of their medians. A choice is good if it took at\n\
             most 15 % longer than the fastest engine.\n\n",
            format::counted(*threads as u64, "thread"),
            sets.join(" "),
        );
        for line in self.summary().lines() {
            let _ = writeln!(text, "- {line}");
        }
        text += "\n| operation | points | within 15 % | alike after a second tuning | worst | at |\n|---|--:|--:|--:|--:|---|\n";
        for operation in Operation::ALL {
            let _ = writeln!(text, "| {} |", self.row(operation).join(" | "));
        }
        text += "\nEvery point; times in µs, `-` where an engine was predicted to take more than thirty times as long as the\n\
                 chosen one. Items are groups, points times passes, queries and the hits that enter their best, or rows.\n\n\
                 | operation | elements | items | work | chosen | best | predicted | taken |";
        let engines: Vec<Engine> = (Engine::ALL.into_iter())
            .filter(|&engine| {
                self.regret
                    .points
                    .iter()
                    .any(|it| taken(it, engine).is_some())
            })
            .collect();
        for engine in &engines {
            let _ = write!(text, " {engine} |");
        }
        text += " regret |\n|---|--:|--:|--:|---|---|--:|--:|--:|";
        text += &"--:|".repeat(engines.len());
        text += "\n";
        for point in &self.regret.points {
            let micros = |seconds: f64| format::significant(1e6 * seconds);
            let _ = write!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                point.operation,
                point.elements,
                point.items,
                point.work,
                point.chosen,
                point.best,
                micros(point.predicted),
                micros(point.seconds)
            );
            for &engine in &engines {
                let time = taken(point, engine).map_or_else(|| "-".to_owned(), micros);
                let _ = write!(text, " {time} |");
            }
            let _ = writeln!(text, " {:.0} % |", 100.0 * point.regret);
        }
        text
    }
}

/// Returns the seconds of an engine at a point.
fn taken(point: &Regret, engine: Engine) -> Option<f64> {
    let found = point.engines.iter().find(|it| it.engine == engine)?;
    Some(found.seconds)
}

#[cfg(test)]
mod tests {
    use tercet_gpu::dispatch::tune::{Differing, Timed};

    use super::*;

    /// A choice of simd where threads took half as long, and a good one.
    fn checked() -> Checked {
        let timed = |engine, seconds| Timed {
            engine,
            seconds,
            predicted: 2e-5,
        };
        let point = |chosen, seconds, regret| Regret {
            operation: Operation::Encode,
            elements: 5000,
            work: 5000,
            items: 7,
            chosen,
            best: Engine::Threads,
            seconds,
            best_seconds: 1e-5,
            regret,
            predicted: 2e-5,
            engines: vec![timed(Engine::Simd, 2e-5), timed(Engine::Threads, 1e-5)],
        };
        Checked {
            regret: Check {
                points: vec![
                    point(Engine::Simd, 2e-5, 1.0),
                    point(Engine::Threads, 1e-5, 0.0),
                ],
                good: 1,
                share: 0.5,
            },
            agreement: Agreement {
                points: 2,
                alike: 1,
                share: 0.5,
                others: vec![Differing {
                    operation: Operation::Encode,
                    elements: 5000,
                    work: 5000,
                    chosen: [Some(Engine::Simd), Some(Engine::Threads)],
                }],
            },
            overhead: 2.5e-7,
            tuned: [4.0, 4.5],
        }
    }

    #[test]
    fn people_see_each_operation_and_the_sums() {
        let text = checked().people();
        let row = text
            .lines()
            .find(|line| line.starts_with("encode "))
            .unwrap();
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells[..6], ["encode", "2", "1", "1", "100", "%"], "{row}");
        assert!(row.ends_with("5000 elements: simd, best threads"), "{row}");
        assert!(
            text.contains("\n1 of 2 choices within 15 % of the best (50.0 %)\n"),
            "{text}"
        );
        assert!(text.contains("\n1 of 2 choices alike after a second tuning (50.0 %)\n"));
        assert!(text.ends_with("a dispatched call takes 250 ns more than a direct one\n"));
    }

    #[test]
    fn the_page_has_every_point_in_whole_rows() {
        let text = checked().markdown(&Key::here(), "2026-01-31");
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
        // Two tables with their heads: the operations, then the points.
        assert_eq!(rows.len(), 2 + Operation::ALL.len() + 2 + 2);
        let cells = |row: &str| row.matches('|').count();
        let (first, second) = rows.split_at(2 + Operation::ALL.len());
        for table in [first, second] {
            assert!(
                table.iter().all(|row| cells(row) == cells(table[0])),
                "{text}"
            );
        }
        let point =
            "| encode | 5000 | 7 | 5000 | simd | threads | 20.00 | 20.00 | 20.00 | 10.00 | 100 % |";
        assert_eq!(second[2], point);
        assert!(text.contains("2026-01-31, tercet "));
    }
}
