//! The report of measured operations: a roofline, bars per case, scaling over threads, bandwidth by working set.

mod bandwidth;
mod bars;
mod legend;
pub(super) mod plot;
mod roofline;
mod scaling;

use super::page::{self, HEADING, Page, Table};
use crate::measure::{BackendPeak, Bandwidth, Measured};

/// Measured operations and their ceilings.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// Figures by name, for the page.
    pub facts: Vec<(String, String)>,
    /// The results, with the contenders of a case one after another and the same ones for all cases.
    pub results: &'a [Measured],
    /// Memory bandwidth, by threads and rising working sets.
    pub bandwidths: &'a [Bandwidth],
    /// Multiply-adds of the instruction sets.
    pub peaks: &'a [BackendPeak],
}

/// Px between sections.
const GAP: f64 = 34.0;

impl Bench<'_> {
    /// Draws the available parts: without products no roofline, with one number of threads no scaling.
    pub fn page(&self) -> Page {
        let mut body = String::new();
        let mut y = HEADING;
        for section in [bars::draw, roofline::draw, scaling::draw, bandwidth::draw] {
            let height = section(&mut body, y, self);
            if height > 0.0 {
                y += height + GAP;
            }
        }
        Page {
            svg: page::document(&self.title, &self.line, y - HEADING, &body),
            title: self.title.clone(),
            facts: self.facts.clone(),
            table: self.table(),
        }
    }

    /// Returns the contenders, in the order of their first results.
    fn contenders(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for found in self.results {
            let name = found.contender();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the results case by case.
    fn cases(&self) -> Vec<&[Measured]> {
        let same = |a: &Measured, b: &Measured| (&a.operation, &a.size) == (&b.operation, &b.size);
        self.results.chunk_by(same).collect()
    }

    fn table(&self) -> Table {
        let rows = self.results.iter().map(|found| {
            let products = match found.products {
                0 => "–".to_owned(),
                _ => format!("{:.2}", found.products_per_second / 1e9),
            };
            let peak = found.peak_memory.map_or_else(
                || "–".to_owned(),
                |bytes| format!("{:.1}", bytes as f64 / 1048576.0),
            );
            vec![
                found.operation.clone(),
                found.size.clone(),
                found.contender(),
                format!("{:.4}", found.seconds * 1e3),
                format!("{:.4}", found.median_seconds * 1e3),
                format!("{:.3}", found.values_per_second / 1e9),
                format!("{:.2}", found.bytes_per_second / 1e9),
                products,
                format!("{:.2}", found.speedup),
                format!("{:.0} %", found.roofline * 100.0),
                found.bound.name().to_owned(),
                peak,
            ]
        });
        Table {
            caption: "Best and median times, rates by the best, speed-up over the scalar engine",
            columns: vec![
                "operation",
                "size",
                "engine",
                "best ms",
                "median ms",
                "G values/s",
                "GB/s",
                "G mul-add/s",
                "speed-up",
                "roofline",
                "bound by",
                "peak MiB",
            ],
            rows: rows.collect(),
        }
    }
}
