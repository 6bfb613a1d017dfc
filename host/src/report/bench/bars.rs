//! One row per case: how many times as fast as the scalar engine, and how near the roofline.

use super::{Bench, legend, plot};
use crate::measure::Measured;
use crate::report::axis::Axis;
use crate::report::colour;
use crate::report::log_axis::LogAxis;
use crate::report::page::{MARGIN, WIDTH};
use crate::report::svg::{line, rectangle, text};

/// Px of names, and of the two fields.
const NAMES: f64 = 312.0;
const GAP: f64 = 60.0;
/// Px of a bar, and between rows.
const BAR: f64 = 8.0;
const BETWEEN: f64 = 8.0;
const LEAST: f64 = 14.0;
/// Px above the rows, beside the legend: the headings and the numbers along the axes.
const HEAD: f64 = 44.0;

const NUMBER: &str = r#"class="faint" font-size="11""#;

pub(super) fn draw(out: &mut String, start: f64, bench: &Bench<'_>) -> f64 {
    let cases = bench.cases();
    if cases.is_empty() {
        return 0.0;
    }
    let contenders = bench.contenders();
    let colour = |found: &Measured| {
        let place = contenders
            .iter()
            .position(|name| *name == found.contender());
        colour::of(place.unwrap_or(0))
    };
    let names: Vec<_> = contenders
        .iter()
        .enumerate()
        .map(|(place, name)| (name.clone(), colour::of(place)))
        .collect();
    let top = start + legend::draw(out, (MARGIN, start), WIDTH - 2.0 * MARGIN, &names) + HEAD;
    let width = (WIDTH - 2.0 * MARGIN - NAMES - 2.0 * GAP) / 2.0;
    let left = MARGIN + NAMES;
    let right = left + width + GAP;
    let faster = LogAxis::of(
        bench.results.iter().map(|found| found.speedup).chain([1.0]),
        2.0,
        left,
        left + width,
    );
    let share = Axis::from_zero(
        bench
            .results
            .iter()
            .map(|found| found.roofline)
            .chain([1.0]),
        right,
        right + width,
    );
    let row = |case: &[Measured]| (BAR * case.len() as f64).max(LEAST) + BETWEEN;
    let floor = top + cases.iter().map(|case| row(case)).sum::<f64>();
    let heading = r#"class="ink" font-weight="bold""#;
    let words = format!("Times as fast as {}", contenders[0]);
    text(out, (left, top - 28.0), "start", heading, &words);
    text(
        out,
        (right, top - 28.0),
        "start",
        heading,
        "Share of the roofline",
    );
    for value in faster.ticks(2.0, 8) {
        let x = faster.at(value);
        line(out, (x, top - 4.0), (x, floor), r#"class="grid""#);
        text(out, (x, top - 9.0), "middle", NUMBER, &plot::number(value));
    }
    for value in share.ticks(5, false) {
        let x = share.at(value);
        line(out, (x, top - 4.0), (x, floor), r#"class="grid""#);
        let percent = format!("{:.0} %", value * 100.0);
        text(out, (x, top - 9.0), "middle", NUMBER, &percent);
    }
    for x in [faster.at(1.0), share.at(1.0)] {
        line(out, (x, top - 4.0), (x, floor), r#"class="axis""#);
    }
    let mut y = top;
    for case in cases {
        let height = row(case) - BETWEEN;
        let middle = y + height / 2.0 + 4.0;
        let first = &case[0];
        text(
            out,
            (MARGIN, middle),
            "start",
            r#"class="ink" font-size="12""#,
            &first.operation,
        );
        text(out, (left - 14.0, middle), "end", NUMBER, &first.size);
        let bar = BAR.max(height / case.len() as f64);
        for (place, found) in case.iter().enumerate() {
            let (y, style) = (
                y + place as f64 * bar,
                format!(r#"fill="{}""#, colour(found)),
            );
            let (one, end) = (faster.at(1.0), faster.at(found.speedup));
            // A bar of length zero would not show its colour.
            let size = ((end - one).abs().max(1.5), bar - 1.0);
            rectangle(out, (one.min(end), y), size, &style);
            let size = ((share.at(found.roofline) - right).max(1.5), bar - 1.0);
            rectangle(out, (right, y), size, &style);
        }
        // The figures of the best.
        let fastest = case.iter().max_by(|a, b| a.speedup.total_cmp(&b.speedup));
        if let Some(found) = fastest {
            let place = case.iter().position(|other| std::ptr::eq(other, found));
            let y = y + (place.unwrap_or(0) as f64 + 0.5) * bar + 3.5;
            let at = (faster.at(found.speedup.max(1.0)) + 5.0, y);
            text(out, at, "start", NUMBER, &format!("{:.1}×", found.speedup));
            let at = (share.at(found.roofline) + 5.0, y);
            let percent = format!("{:.0} %", found.roofline * 100.0);
            text(out, at, "start", NUMBER, &percent);
        }
        y += height + BETWEEN;
    }
    floor - start
}
