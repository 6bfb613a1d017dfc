//! Labelled points of several series, over an axis of ratios.

use super::axis::{Axis, tick};
use super::colour;
use super::log_axis::{LogAxis, number};
use super::page::{self, HEADING, MARGIN, Page, Table, WIDTH};
use super::place::{Area, place};
use super::svg::{circle, line, text};

/// A labelled point with two heights.
#[derive(Clone, Debug)]
pub struct Dot {
    /// The text beside it.
    pub label: String,
    /// Index into [`Scatter::series`].
    pub series: usize,
    /// Its place on the axis of ratios; positive.
    pub x: f64,
    /// The height of the filled dot.
    pub y: f64,
    /// The height of the hollow dot.
    pub hollow: f64,
}

/// Points with labels that do not cover each other.
#[derive(Clone, Debug)]
pub struct Scatter<'a> {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// Figures by name, for the page.
    pub facts: Vec<(String, String)>,
    /// Names of the horizontal axis, the vertical axis and the hollow dots.
    pub names: [&'static str; 3],
    /// Names of the series, each of which has a colour.
    pub series: &'a [&'a str],
    /// The points.
    pub dots: &'a [Dot],
    /// A height that all are compared with, and its name.
    pub reference: (f64, &'a str),
}

/// Px of the field, and around it.
const HEIGHT: f64 = 470.0;
const LEFT: f64 = MARGIN + 44.0;
const RIGHT: f64 = WIDTH - MARGIN;
const LEGEND: f64 = 34.0;
const BELOW: f64 = 46.0;
const RADIUS: f64 = 5.0;
/// The largest average width of a character of a label.
const ADVANCE: f64 = 7.4;

const TOP: f64 = HEADING + LEGEND;
const FLOOR: f64 = TOP + HEIGHT;

/// Both axes.
struct Axes {
    across: LogAxis,
    up: Axis,
}

impl Axes {
    fn x(&self, dot: &Dot) -> f64 {
        self.across.at(dot.x)
    }
}

impl Scatter<'_> {
    /// Draws the points.
    pub fn page(&self) -> Page {
        let heights = self.dots.iter().flat_map(|dot| [dot.y, dot.hollow]);
        let axes = Axes {
            across: LogAxis::of(self.dots.iter().map(|dot| dot.x), 2.0, LEFT, RIGHT),
            up: Axis::of(heights.chain([self.reference.0]), 0.06, FLOOR, TOP),
        };
        let mut body = String::new();
        self.grid(&mut body, &axes);
        self.legend(&mut body);
        let taken = self.level(&mut body, &axes);
        for dot in self.dots {
            let (x, colour) = (axes.x(dot), colour::of(dot.series));
            let (y, hollow) = (axes.up.at(dot.y), axes.up.at(dot.hollow));
            line(
                &mut body,
                (x, y),
                (x, hollow),
                &format!(r#"stroke="{colour}""#),
            );
            ring(&mut body, (x, hollow), "none", &colour);
            ring(&mut body, (x, y), &colour, &colour);
        }
        self.labels(&mut body, &axes, taken);
        Page {
            svg: page::document(&self.title, &self.line, LEGEND + HEIGHT + BELOW, &body),
            title: self.title.clone(),
            facts: self.facts.clone(),
            table: self.table(),
        }
    }

    fn grid(&self, out: &mut String, axes: &Axes) {
        let number_style = r#"class="faint" font-size="12""#;
        for value in axes.up.ticks(8, false) {
            let y = axes.up.at(value);
            line(out, (LEFT, y), (RIGHT, y), r#"class="grid""#);
            let at = (LEFT - 8.0, y + 4.5);
            text(out, at, "end", number_style, &tick(value, 0));
        }
        line(out, (LEFT, FLOOR), (RIGHT, FLOOR), r#"class="axis""#);
        for value in axes.across.ticks(2.0, 16) {
            let x = axes.across.at(value);
            line(out, (x, FLOOR), (x, FLOOR + 5.0), r#"class="axis""#);
            text(
                out,
                (x, FLOOR + 19.0),
                "middle",
                number_style,
                &number(value),
            );
        }
        let [across, up, _] = self.names;
        let at = ((LEFT + RIGHT) / 2.0, FLOOR + 40.0);
        text(out, at, "middle", r#"class="faint""#, across);
        text(
            out,
            (MARGIN, TOP - 12.0),
            "start",
            r#"class="faint" font-size="12""#,
            up,
        );
    }

    fn legend(&self, out: &mut String) {
        let (mut x, y) = (LEFT + 200.0, TOP - 16.0);
        let mut entry = |fill: &str, stroke: &str, name: &str| {
            ring(out, (x, y), fill, stroke);
            text(out, (x + 12.0, y + 4.5), "start", r#"class="ink""#, name);
            x += 12.0 + name.chars().count() as f64 * ADVANCE + 18.0;
        };
        for (index, name) in self.series.iter().enumerate() {
            let colour = colour::of(index);
            entry(&colour, &colour, name);
        }
        entry("none", "#808080", self.names[2]);
    }

    /// Draws the reference; returns the areas that it takes.
    fn level(&self, out: &mut String, axes: &Axes) -> Vec<Area> {
        let (value, name) = self.reference;
        let y = axes.up.at(value);
        let style = r#"class="axis" stroke-dasharray="6 4""#;
        line(out, (LEFT, y), (RIGHT, y), style);
        text(out, (RIGHT, y - 7.0), "end", r#"class="ink""#, name);
        let width = name.chars().count() as f64 * ADVANCE;
        vec![
            Area(RIGHT - width, y - 20.0, RIGHT, y),
            Area(LEFT, y - 1.0, RIGHT, y + 1.0),
        ]
    }

    /// Writes each label near its dot, with a line to it where it had to move away.
    fn labels(&self, out: &mut String, axes: &Axes, mut taken: Vec<Area>) {
        for dot in self.dots {
            for y in [dot.y, dot.hollow] {
                taken.push(Area::around((axes.x(dot), axes.up.at(y)), RADIUS + 2.0));
            }
        }
        let field = Area(LEFT + 4.0, TOP - 4.0, RIGHT, FLOOR);
        for dot in self.dots {
            let (x, y) = (axes.x(dot), axes.up.at(dot.y));
            let width = dot.label.chars().count() as f64 * ADVANCE;
            let Some(area) = place((x, y), width, &field, &taken) else {
                continue;
            };
            let middle = (area.1 + area.3) / 2.0;
            let near = (x.clamp(area.0, area.2), y.clamp(middle - 5.0, middle + 5.0));
            let colour = colour::of(dot.series);
            if (near.0 - x).hypot(near.1 - y) > 2.5 * RADIUS {
                let style = format!(r#"stroke="{colour}" stroke-opacity="0.5""#);
                line(out, (x, y), near, &style);
            }
            let at = (area.0, middle + 4.5);
            text(out, at, "start", r#"class="ink""#, &dot.label);
            taken.push(area);
        }
    }

    fn table(&self) -> Table {
        let [across, up, hollow] = self.names;
        let rows = self.dots.iter().map(|dot| {
            vec![
                dot.label.clone(),
                self.series
                    .get(dot.series)
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
                format!("{:.4}", dot.x),
                format!("{:.2}", dot.y),
                format!("{:.2}", dot.hollow),
            ]
        });
        Table {
            caption: "Points",
            columns: vec!["point", "series", across, up, hollow],
            rows: rows.collect(),
        }
    }
}

/// Draws a dot that may be hollow.
fn ring(out: &mut String, at: (f64, f64), fill: &str, stroke: &str) {
    let style = format!(r#"fill="{fill}" stroke="{stroke}" stroke-width="1.5""#);
    circle(out, at, RADIUS, &style);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lowest: f64, count: usize) -> Page {
        let dots: Vec<Dot> = (0..count)
            .map(|i| Dot {
                label: format!("point<{i}>"),
                series: i % 2,
                x: 2.0 + i as f64 * 0.02,
                y: 92.0 + i as f64 * 0.1,
                hollow: if i == 0 { lowest } else { 92.0 },
            })
            .collect();
        Scatter {
            title: "t".to_owned(),
            line: "l".to_owned(),
            facts: Vec::new(),
            names: ["bits", "per cent", "hollow"],
            series: &["one", "two"],
            dots: &dots,
            reference: (95.0, "f32"),
        }
        .page()
    }

    /// Returns the numbers of attributes in the lines of an SVG that contain `what`.
    fn places(svg: &str, what: &str, names: [&str; 2]) -> Vec<(f64, f64)> {
        let number = |line: &str, name: &str| -> f64 {
            let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let lines = svg.lines().filter(|line| line.contains(what));
        lines
            .map(|line| (number(line, names[0]), number(line, names[1])))
            .collect()
    }

    #[test]
    fn crowded_labels_do_not_cover_each_other() {
        let labels = places(page(92.0, 10).svg(), "point&lt;", ["x", "y"]);
        assert_eq!(labels.len(), 10);
        let width = 8.0 * ADVANCE;
        for (i, a) in labels.iter().enumerate() {
            for b in &labels[..i] {
                let apart = (a.0 - b.0).abs() >= width || (a.1 - b.1).abs() >= 15.9;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn axes_hold_every_point() {
        for lowest in [3.0, 61.0, 99.9] {
            let page = page(lowest, 2);
            let dots = places(page.svg(), "<circle", ["cx", "cy"]);
            // Three of the legend, two of each point.
            assert_eq!(dots.len(), 3 + 2 * 2);
            for (x, y) in &dots[3..] {
                assert!(
                    (LEFT..=RIGHT).contains(x) && (TOP..=FLOOR).contains(y),
                    "{x} {y}"
                );
            }
        }
    }
}
