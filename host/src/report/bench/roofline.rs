//! The roofline (Williams, Waterman and Patterson, 2009): multiply-adds per second over multiply-adds per byte.

use super::plot::{self, Field};
use super::{Bench, legend};
use crate::measure::{Bandwidth, Measured};
use crate::report::colour;
use crate::report::page::{MARGIN, WIDTH};
use crate::report::place::{Area, place};
use crate::report::svg::{circle, escape, line, text};
use std::fmt::Write as _;

const HEIGHT: f64 = 460.0;
/// Px of a line of names below.
const LINE: f64 = 16.0;
const COLUMNS: usize = 3;

const SMALL: &str = r#"class="faint" font-size="11""#;

pub(super) fn draw(out: &mut String, y: f64, bench: &Bench<'_>) -> f64 {
    // The last contender has the most threads and the best backend; ceilings are those of the processor.
    let on_device = |name: &String| {
        let named = bench.results.iter().filter(|found| found.device);
        named.map(Measured::contender).any(|other| other == *name)
    };
    let mut names = bench.contenders().into_iter().rev();
    let last = names.find(|name| !on_device(name));
    let points: Vec<&Measured> = bench
        .results
        .iter()
        .filter(|found| found.products > 0 && Some(found.contender()) == last)
        .collect();
    let Some(&first) = points.first() else {
        return 0.0;
    };
    let intensity = |found: &Measured| found.products as f64 / found.bytes as f64;
    let memory: Vec<&Bandwidth> = bench
        .bandwidths
        .iter()
        .filter(|measured| measured.threads == first.threads)
        .collect();
    let peaks: Vec<_> = bench
        .peaks
        .iter()
        .filter(|peak| peak.threads == first.threads)
        .collect();
    let field = Field::new(y, HEIGHT);
    let across = field.across(points.iter().map(|found| intensity(found)), 10.0);
    let ceilings = peaks
        .iter()
        .flat_map(|named| [named.peak.int8, named.peak.ternary]);
    let rates = points.iter().map(|found| found.products_per_second);
    let up = field.up(rates.chain(ceilings).map(|rate| rate / 1e9), 10.0);
    let heading = format!("Roofline of {}", first.contender());
    field.words(
        out,
        &heading,
        "G multiply-adds/s",
        "multiply-adds per byte that must be moved",
    );
    for value in up.ticks(10.0, 8) {
        field.level(out, up.at(value), &plot::number(value));
    }
    for value in across.ticks(10.0, 8) {
        field.mark(out, across.at(value), &plot::number(value));
    }
    field.ground(out);
    let mut taken: Vec<Area> = Vec::new();
    // Bandwidth of the smallest and the largest set: from the left edge up to the highest peak.
    let roof = up.high;
    let mut shown = vec![memory.first(), memory.last()];
    shown.dedup_by_key(|measured| measured.map(|measured| measured.bytes));
    for measured in shown.into_iter().flatten() {
        let rate = measured.read.best() / 1e9;
        let from = across.low.max(up.low / rate);
        let to = across.high.min(roof / rate);
        if from >= to {
            continue;
        }
        let (a, b) = (
            (across.at(from), up.at(from * rate)),
            (across.at(to), up.at(to * rate)),
        );
        line(out, a, b, r##"stroke="#8a8a8a" stroke-width="1.5""##);
        let words = format!(
            "{:.0} GB/s, {} read",
            rate,
            plot::bytes(measured.bytes as f64)
        );
        let slope = (b.1 - a.1).atan2(b.0 - a.0).to_degrees();
        // Along the line, a fifth of its way up.
        let at = (a.0 + (b.0 - a.0) * 0.12, a.1 + (b.1 - a.1) * 0.12 - 5.0);
        // The space of the slanted text, in pieces.
        let along = slope.to_radians();
        taken.extend((0..words.chars().count()).map(|index| {
            let away = (index as f64 + 0.5) * 6.6;
            let (x, y) = (at.0 + away * along.cos(), at.1 + away * along.sin() - 4.0);
            Area(x - 5.0, y - 6.0, x + 5.0, y + 6.0)
        }));
        let _ = writeln!(
            out,
            r#"<text x="{:.1}" y="{:.1}" transform="rotate({slope:.1} {:.1} {:.1})" {SMALL}>{}</text>"#,
            at.0,
            at.1,
            at.0,
            at.1,
            escape(&words)
        );
    }
    for named in &peaks {
        let mut kinds = vec![("int8", named.peak.int8)];
        if named.peak.ternary > named.peak.int8 * 1.05 {
            kinds.push(("ternary", named.peak.ternary));
        }
        for (kind, rate) in kinds {
            let y = up.at(rate / 1e9);
            let dashes = r##"stroke="#8a8a8a" stroke-width="1.5" stroke-dasharray="5 4""##;
            line(out, (field.left, y), (field.right, y), dashes);
            let words = format!("{:.0} G/s, {} {kind}", rate / 1e9, named.backend);
            let wide = words.chars().count() as f64 * 6.6;
            // If two peaks are close, the later one's text is left of the earlier one's.
            let mut right = field.right;
            while taken
                .iter()
                .any(|other| other.overlap(&Area(right - wide, y - 14.0, right, y)) > 0.0)
                && right - 2.0 * wide > field.left
            {
                right -= wide + 12.0;
            }
            taken.push(Area(right - wide, y - 16.0, right, y));
            text(out, (right, y - 5.0), "end", SMALL, &words);
        }
    }
    let families = families(&points);
    for found in &points {
        let at = (
            across.at(intensity(found)),
            up.at(found.products_per_second / 1e9),
        );
        taken.push(Area::around(at, 4.0));
    }
    let inside = Area(field.left, field.top, field.right, field.floor);
    for (index, found) in points.iter().enumerate() {
        let at = (
            across.at(intensity(found)),
            up.at(found.products_per_second / 1e9),
        );
        let fill = families
            .iter()
            .position(|name| *name == family(found))
            .map_or_else(|| colour::of(0), colour::of);
        circle(out, at, 4.0, &format!(r#"fill="{fill}" class="edge""#));
        let number = (index + 1).to_string();
        let wide = number.chars().count() as f64 * 7.0 + 2.0;
        let free = |area: &Area| taken.iter().all(|other| area.overlap(other) == 0.0);
        if let Some(area) = place(at, wide, &inside, &taken).filter(free) {
            let style = r#"class="ink" font-size="11""#;
            let at = ((area.0 + area.2) / 2.0, (area.1 + area.3) / 2.0 + 4.0);
            text(out, at, "middle", style, &number);
            taken.push(area);
        }
    }
    let names: Vec<_> = families
        .iter()
        .enumerate()
        .map(|(index, name)| ((*name).to_owned(), colour::of(index)))
        .collect();
    let below = y + HEIGHT + 4.0;
    let legend = legend::draw(out, (MARGIN, below), WIDTH - 2.0 * MARGIN, &names);
    let rows = points.len().div_ceil(COLUMNS);
    let column = (WIDTH - 2.0 * MARGIN) / COLUMNS as f64;
    for (index, found) in points.iter().enumerate() {
        let at = (
            MARGIN + (index / rows) as f64 * column,
            below + legend + 14.0 + (index % rows) as f64 * LINE,
        );
        let words = format!("{}  {}, {}", index + 1, found.operation, found.size);
        text(out, at, "start", r#"class="ink" font-size="11""#, &words);
    }
    HEIGHT + 4.0 + legend + 14.0 + rows as f64 * LINE
}

/// Returns the first word of an operation.
fn family(found: &Measured) -> &str {
    found.operation.split(' ').next().unwrap_or_default()
}

/// Returns every first word, in order.
fn families<'a>(points: &[&'a Measured]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for &found in points {
        if !names.contains(&family(found)) {
            names.push(family(found));
        }
    }
    names
}
