//! One scatter plot as SVG: bits per weight against accuracy, with every point labelled.

use std::fmt::Write as _;

use tercet_host::report::svg::{circle, escape, line, text};

use super::place::{Area, place};

/// A point of the plot.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Written beside it.
    pub(crate) label: String,
    /// Index into the series given to [`svg`].
    pub(crate) series: usize,
    /// Bits per weight; positive.
    pub(crate) bits: f64,
    /// Per cent correct with float activations.
    pub(crate) float: f64,
    /// Per cent correct with int8 activations.
    pub(crate) int8: f64,
}

/// A family of points that share a colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    /// Its text in the legend.
    pub(crate) name: &'static str,
    /// An SVG colour.
    pub(crate) colour: &'static str,
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 600.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 68.0;
const DOT: f64 = 5.0;
/// Label size in px, and the largest average width of a character in the fonts named below.
const FONT: f64 = 13.0;
const ADVANCE: f64 = 7.4;
const INK: &str = r##"fill="#1a1a1a""##;
const FAINT: &str = r##"fill="#444444""##;

/// Converts values to px: bits on a logarithmic axis, per cent on a linear one.
#[derive(Clone, Copy, Debug)]
struct Scale {
    bits: (f64, f64),
    percent: (f64, f64),
}

impl Scale {
    /// Returns axes for all points: per cent from a multiple of five below the lowest up to 100.
    fn of(points: &[Point], reference: f64) -> Self {
        let fold = |from: f64, pick: fn(f64, f64) -> f64, of: fn(&Point) -> f64| {
            points.iter().map(of).fold(from, pick)
        };
        let low = fold(reference, f64::min, |p| p.float.min(p.int8));
        let bits = (
            fold(2.0, f64::min, |p| p.bits) / 1.12,
            fold(8.0, f64::max, |p| p.bits) * 1.18,
        );
        Self {
            bits,
            percent: (((low - 1.0) / 5.0).floor() * 5.0, 100.0),
        }
    }

    fn x(&self, bits: f64) -> f64 {
        let part = (bits / self.bits.0).ln() / (self.bits.1 / self.bits.0).ln();
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, percent: f64) -> f64 {
        let part = (percent - self.percent.0) / (self.percent.1 - self.percent.0);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

/// Draws the points, and `reference` (the accuracy of the unquantized classifier) as a dashed line.
pub(crate) fn svg(title: &str, points: &[Point], series: &[Series], reference: f64) -> String {
    let scale = Scale::of(points, reference);
    let mut out = format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" "#,
            r#"font-family="DejaVu Sans, Verdana, sans-serif" font-size="{f}" role="img">"#,
            "\n<title>{t}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n",
            r##"<text x="{l}" y="30" font-size="18" font-weight="bold" fill="#1a1a1a">{t}</text>"##,
            "\n"
        ),
        w = WIDTH,
        h = HEIGHT,
        f = FONT,
        l = LEFT,
        t = escape(title),
    );
    axes(&mut out, &scale);
    legend(&mut out, series);
    let level = scale.y(reference);
    line(
        &mut out,
        (LEFT, level),
        (WIDTH - RIGHT, level),
        r##"stroke="#1a1a1a" stroke-dasharray="6 4""##,
    );
    let note = format!("f32 weights, float activations: {reference:.2} %");
    let note_area = Area(
        WIDTH - RIGHT - note.len() as f64 * ADVANCE,
        level - 20.0,
        WIDTH - RIGHT,
        level,
    );
    text(&mut out, (WIDTH - RIGHT, level - 7.0), "end", INK, &note);
    for point in points {
        dot(&mut out, &scale, point, series[point.series].colour);
    }
    labels(
        &mut out,
        &scale,
        points,
        series,
        vec![
            note_area,
            Area(LEFT, level - 1.0, WIDTH - RIGHT, level + 1.0),
        ],
    );
    out.push_str("</svg>\n");
    out
}

fn axes(out: &mut String, scale: &Scale) {
    let (low, high) = scale.percent;
    let step = if high - low > 50.0 { 10.0 } else { 5.0 };
    let mut percent = high;
    while percent >= low {
        let y = scale.y(percent);
        line(out, (LEFT, y), (WIDTH - RIGHT, y), r##"stroke="#e4e4e4""##);
        text(
            out,
            (LEFT - 10.0, y + 4.5),
            "end",
            FAINT,
            &format!("{percent:.0} %"),
        );
        percent -= step;
    }
    let floor = HEIGHT - BOTTOM;
    for bits in [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0] {
        if bits > scale.bits.0 && bits < scale.bits.1 {
            let x = scale.x(bits);
            line(out, (x, TOP), (x, floor), r##"stroke="#f0f0f0""##);
            line(out, (x, floor), (x, floor + 5.0), r##"stroke="#888888""##);
            text(out, (x, floor + 21.0), "middle", FAINT, &bits.to_string());
        }
    }
    line(
        out,
        (LEFT, floor),
        (WIDTH - RIGHT, floor),
        r##"stroke="#888888""##,
    );
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    text(
        out,
        (middle, HEIGHT - 18.0),
        "middle",
        INK,
        "bits per weight (logarithmic axis)",
    );
    let middle = (TOP + floor) / 2.0;
    let _ = writeln!(
        out,
        r##"<text transform="translate(20 {middle}) rotate(-90)" text-anchor="middle" fill="#1a1a1a">accuracy on the held-out half</text>"##
    );
}

fn legend(out: &mut String, series: &[Series]) {
    let (mut x, y) = (LEFT + DOT, 58.0);
    let mut entry = |out: &mut String, fill: &str, stroke: &str, name: &str| {
        ring(out, (x, y), fill, stroke);
        text(out, (x + 12.0, y + 4.5), "start", INK, name);
        x += 12.0 + name.chars().count() as f64 * ADVANCE + 26.0;
    };
    for series in series {
        entry(out, series.colour, series.colour, series.name);
    }
    entry(out, "#ffffff", "#666666", "the same with int8 activations");
}

fn dot(out: &mut String, scale: &Scale, point: &Point, colour: &str) {
    let x = scale.x(point.bits);
    let (float, int8) = (scale.y(point.float), scale.y(point.int8));
    line(out, (x, float), (x, int8), &format!(r#"stroke="{colour}""#));
    ring(out, (x, int8), "#ffffff", colour);
    ring(out, (x, float), colour, colour);
}

/// Writes each label near its dot, with a line to it where it had to move away.
fn labels(
    out: &mut String,
    scale: &Scale,
    points: &[Point],
    series: &[Series],
    mut taken: Vec<Area>,
) {
    for point in points {
        let x = scale.x(point.bits);
        taken.push(Area::around((x, scale.y(point.float)), DOT + 2.0));
        taken.push(Area::around((x, scale.y(point.int8)), DOT + 2.0));
    }
    let field = Area(LEFT + 4.0, TOP - 8.0, WIDTH - RIGHT, HEIGHT - BOTTOM);
    for point in points {
        let (x, y) = (scale.x(point.bits), scale.y(point.float));
        let width = point.label.chars().count() as f64 * ADVANCE;
        let Some(area) = place((x, y), width, &field, &taken) else {
            continue;
        };
        let middle = (area.1 + area.3) / 2.0;
        let near = (x.clamp(area.0, area.2), y.clamp(middle - 5.0, middle + 5.0));
        let colour = series[point.series].colour;
        if (near.0 - x).hypot(near.1 - y) > 2.5 * DOT {
            let style = format!(r#"stroke="{colour}" stroke-opacity="0.5""#);
            line(out, (x, y), near, &style);
        }
        let style = format!(r#"fill="{colour}""#);
        text(out, (area.0, middle + 4.5), "start", &style, &point.label);
        taken.push(area);
    }
}

/// Draws a dot that may be hollow.
fn ring(out: &mut String, at: (f64, f64), fill: &str, stroke: &str) {
    let style = format!(r#"fill="{fill}" stroke="{stroke}" stroke-width="1.5""#);
    circle(out, at, DOT, &style);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: [Series; 1] = [Series {
        name: "one",
        colour: "#000000",
    }];

    fn crowd(count: usize) -> Vec<Point> {
        (0..count)
            .map(|i| Point {
                label: format!("point<{i}>"),
                series: 0,
                bits: 2.0 + i as f64 * 0.02,
                float: 92.0 + i as f64 * 0.1,
                int8: 92.0,
            })
            .collect()
    }

    /// Returns the x and y of every text element that names a point.
    fn labels_of(svg: &str) -> Vec<(f64, f64)> {
        let number = |line: &str, key: &str| -> f64 {
            let from = line.find(key).unwrap() + key.len();
            line[from..].split('"').next().unwrap().parse().unwrap()
        };
        svg.lines()
            .filter(|line| line.contains("point&lt;"))
            .map(|line| (number(line, "x=\""), number(line, " y=\"")))
            .collect()
    }

    #[test]
    fn crowded_labels_do_not_cover_each_other() {
        let points = crowd(10);
        let labels = labels_of(&svg("t", &points, &SERIES, 95.0));
        assert_eq!(labels.len(), points.len());
        let width = 8.0 * ADVANCE;
        for (i, a) in labels.iter().enumerate() {
            for b in &labels[..i] {
                assert!(
                    (a.0 - b.0).abs() >= width || (a.1 - b.1).abs() >= 15.9,
                    "{a:?} {b:?}"
                );
            }
        }
    }

    #[test]
    fn axes_hold_every_point() {
        for low in [3.0, 61.0, 99.9] {
            let mut points = crowd(2);
            points[0].int8 = low;
            let scale = Scale::of(&points, 95.0);
            let lowest = low.min(92.0);
            assert!(scale.percent.0 < lowest && lowest - scale.percent.0 <= 6.0);
            assert!(scale.y(low) < HEIGHT - BOTTOM && scale.y(low) > TOP);
            assert!(scale.x(points[1].bits) > LEFT && scale.x(points[1].bits) < WIDTH - RIGHT);
        }
    }
}
