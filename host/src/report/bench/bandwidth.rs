//! Memory bandwidth by working set: its steps are the caches.

use super::plot::{self, Field};
use super::{Bench, legend};
use crate::measure::Traffic;
use crate::report::colour;
use crate::report::page::{MARGIN, WIDTH};
use crate::report::svg::{At, polyline};

const HEIGHT: f64 = 380.0;

/// The drawn mixes, each with the index of its colour.
const DRAWN: [Traffic; 4] = [
    Traffic::Read,
    Traffic::Write,
    Traffic::Copy,
    Traffic::Narrow,
];

pub(super) fn draw(out: &mut String, y: f64, bench: &Bench<'_>) -> f64 {
    let measured = bench.bandwidths;
    let mut threads: Vec<usize> = Vec::new();
    for measured in measured {
        if let Err(place) = threads.binary_search(&measured.threads) {
            threads.insert(place, measured.threads);
        }
    }
    let Some(&most) = threads.last() else {
        return 0.0;
    };
    let field = Field::new(y, HEIGHT);
    let across = field.across(measured.iter().map(|set| set.bytes as f64), 2.0);
    let rates = measured
        .iter()
        .flat_map(|set| DRAWN.map(|traffic| set.of(traffic).best() / 1e9));
    let up = field.up(rates, 2.0);
    let words = match most {
        1 => "Bandwidth of one thread".to_owned(),
        _ => format!("Bandwidth of {most} threads; dashed: of one"),
    };
    field.words(
        out,
        &words,
        "GB/s",
        "working set of all threads together, bytes",
    );
    for value in up.ticks(2.0, 8) {
        field.level(out, up.at(value), &plot::number(value));
    }
    for value in across.ticks(2.0, 10) {
        field.mark(out, across.at(value), &plot::bytes(value));
    }
    field.ground(out);
    for (place, traffic) in DRAWN.into_iter().enumerate() {
        for &threads in &threads {
            if threads != 1 && threads != most {
                continue;
            }
            let line: Vec<At> = measured
                .iter()
                .filter(|set| set.threads == threads)
                .map(|set| {
                    (
                        across.at(set.bytes as f64),
                        up.at(set.of(traffic).best() / 1e9),
                    )
                })
                .collect();
            let dashes = if threads < most {
                r#" stroke-dasharray="4 4""#
            } else {
                ""
            };
            let fill = colour::of(place);
            let style = format!(r#"fill="none" stroke="{fill}" stroke-width="2"{dashes}"#);
            polyline(out, &line, &style);
        }
    }
    let names: Vec<_> = DRAWN
        .iter()
        .enumerate()
        .map(|(place, traffic)| (traffic.name().to_owned(), colour::of(place)))
        .collect();
    let below = y + HEIGHT + 4.0;
    HEIGHT + 4.0 + legend::draw(out, (MARGIN, below), WIDTH - 2.0 * MARGIN, &names)
}
