//! The report of times by size: a field for each operation, a line for each engine, both scales logarithmic.

use super::colour;
use super::log_axis::LogAxis;
use super::page::{self, HEADING, MARGIN, Page, Table, WIDTH};
use super::svg::{At, circle, line, polyline, text};

/// Fields of lines with logarithmic scales.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// The unit of the vertical scales.
    pub up: &'static str,
    /// The names of fields and lines in the table.
    pub names: [&'static str; 2],
    /// The fields.
    pub panels: Vec<Panel>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its heading.
    pub name: String,
    /// The unit of the horizontal scale.
    pub below: &'static str,
    /// Its lines; lines with the same index have the same colour in all fields.
    pub lines: Vec<Line>,
    /// Points to mark: x, y, and a text beside them.
    pub marks: Vec<(f64, f64, String)>,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name, at its end.
    pub name: String,
    /// x and y, both positive, sorted by x.
    pub points: Vec<(f64, f64)>,
}

/// Fields side by side, their height in px, and the space between and around.
const ACROSS: usize = 2;
const HEIGHT: f64 = 284.0;
const GAP: f64 = 24.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 62.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 42.0;
/// Px between names at the right.
const LEAD: f64 = 13.0;
/// Approximate px per letter of texts at marks.
const LETTER: f64 = 6.0;

impl Curves {
    /// Draws all fields; the page's table has the points.
    pub fn page(&self) -> Page {
        let mut body = String::new();
        let names = self.names();
        for (index, panel) in self.panels.iter().enumerate() {
            let width = (WIDTH - 2.0 * MARGIN + GAP) / ACROSS as f64;
            let (row, column) = (index / ACROSS, index % ACROSS);
            let at = (
                MARGIN + column as f64 * width,
                HEADING + row as f64 * (HEIGHT + GAP),
            );
            panel.draw(&mut body, at, width - GAP, self.up, &names);
        }
        let rows = self.panels.len().div_ceil(ACROSS) as f64;
        Page {
            svg: page::document(&self.title, &self.line, rows * (HEIGHT + GAP), &body),
            title: self.title.clone(),
            facts: Vec::new(),
            table: self.table(),
        }
    }

    /// Returns the lines' names, in the order of their first field.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        names
    }

    fn table(&self) -> Table {
        let lines = self.panels.iter().flat_map(|panel| {
            let lines = panel.lines.iter();
            lines.flat_map(move |line| line.points.iter().map(move |&(x, y)| (panel, line, x, y)))
        });
        Table {
            caption: "Every point",
            columns: {
                let [field, line] = self.names;
                let below = self.panels.first().map_or("x", |panel| panel.below);
                vec![field, line, below, self.up]
            },
            rows: lines
                .map(|(panel, line, x, y)| {
                    let (field, name) = (panel.name.clone(), line.name.clone());
                    vec![field, name, format!("{x}"), format!("{y:.3e}")]
                })
                .collect(),
        }
    }
}

impl Panel {
    fn draw(&self, out: &mut String, at: At, width: f64, up: &str, names: &[&str]) {
        let (left, right) = (at.0 + LEFT, at.0 + width - RIGHT);
        let (top, floor) = (at.1 + TOP, at.1 + HEIGHT - BOTTOM);
        let bold = r#"class="ink" font-weight="bold""#;
        let faint = r#"class="faint" font-size="12""#;
        text(out, (at.0, at.1 + 16.0), "start", bold, &self.name);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = LogAxis::of(points().map(|point| point.0), 2.0, left, right);
        let upward = LogAxis::of(points().map(|point| point.1), 10.0, floor, top);
        for value in upward.ticks(10.0, 5) {
            let y = upward.at(value);
            line(out, (left, y), (right, y), r#"class="grid""#);
            let power = format!("1e{}", value.log10().round());
            text(out, (left - 8.0, y + 4.5), "end", faint, &power);
        }
        line(out, (left, floor), (right, floor), r#"class="axis""#);
        for value in across.ticks(2.0, 6) {
            let x = across.at(value);
            line(out, (x, floor), (x, floor + 5.0), r#"class="axis""#);
            let power = format!("2^{}", value.log2().round());
            text(out, (x, floor + 18.0), "middle", faint, &power);
        }
        let middle = (left + right) / 2.0;
        text(out, (middle, floor + 35.0), "middle", faint, self.below);
        text(out, (left - 8.0, top - 12.0), "end", faint, up);
        // Names at the ends of lines, moved down if two would overlap.
        let (mut ends, mut drawn) = (Vec::new(), Vec::new());
        for line in &self.lines {
            let placed = line
                .points
                .iter()
                .map(|&(x, y)| (across.at(x), upward.at(y)));
            let placed: Vec<At> = placed.collect();
            let place = names.iter().position(|name| *name == line.name);
            let colour = colour::of(place.unwrap_or(0));
            let style = format!(r#"fill="none" stroke="{colour}" stroke-width="2""#);
            polyline(out, &placed, &style);
            if let Some(end) = placed.last() {
                crate::order::insert(&mut ends, (end.1, line, colour), |a, b| a.0.total_cmp(&b.0));
            }
            drawn.push(placed);
        }
        let mut lowest = f64::NEG_INFINITY;
        for (y, line, colour) in ends {
            lowest = y.max(lowest + LEAD);
            let style = format!(r#"fill="{colour}" font-size="12""#);
            text(
                out,
                (right + 5.0, lowest + 4.0),
                "start",
                &style,
                &line.name,
            );
        }
        // Texts of marks, below all lines and within the field, and below those of the mark before if the two would
        // overlap.
        let (mut end, mut height) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (x, y, words) in &self.marks {
            let at = (across.at(*x), upward.at(*y));
            circle(out, at, 4.0, r#"class="mark""#);
            let style = r#"class="ink halo" font-size="11""#;
            let width = words.chars().count() as f64 * LETTER;
            let start = (at.0 + 7.0).min(right - width);
            let lowest = drawn.iter().filter_map(|line| height_at(line, start));
            let mut low = lowest.fold(at.1, f64::max) + LEAD;
            if start < end {
                low = low.max(height + LEAD);
            }
            (end, height) = (start + width, low);
            text(out, (start, low), "start", style, words);
        }
    }
}

/// Returns the height of a line at `x`, between its points.
fn height_at(line: &[At], x: f64) -> Option<f64> {
    let part = line
        .windows(2)
        .find(|part| (part[0].0..=part[1].0).contains(&x))?;
    let (from, to) = (part[0], part[1]);
    let share = (x - from.0) / (to.0 - from.0).max(f64::MIN_POSITIVE);
    Some(from.1 + share * (to.1 - from.1))
}
