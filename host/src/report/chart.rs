//! Charts within a frame: a curve, bars.

use super::axis::{self, Axis};
use super::colour;
use super::svg::{At, circle, line, polyline, rectangle, text};

/// The place of a chart: upper left corner and size, including headings and numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) at: At,
    pub(super) size: At,
}

/// Px around the field of a chart.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// A curve with more points shows no dots.
const DOTS: usize = 64;
/// If there are more bars, they are sorted by height and have no numbers.
const NAMED: usize = 32;

impl Frame {
    fn left(&self) -> f64 {
        self.at.0 + LEFT
    }

    fn right(&self) -> f64 {
        self.at.0 + self.size.0 - RIGHT
    }

    fn top(&self) -> f64 {
        self.at.1 + TOP
    }

    fn floor(&self) -> f64 {
        self.at.1 + self.size.1 - BOTTOM
    }

    /// Draws the heading above the field, and the name of the horizontal axis below it.
    pub(super) fn words(&self, out: &mut String, heading: &str, below: &str) {
        let style = r#"class="ink" font-weight="bold""#;
        text(out, (self.at.0, self.at.1 + 16.0), "start", style, heading);
        let at = ((self.left() + self.right()) / 2.0, self.floor() + 36.0);
        text(out, at, "middle", r#"class="faint""#, below);
    }

    fn vertical(&self, out: &mut String, axis: &Axis, exponent: i32) {
        for value in axis.ticks(5, false) {
            let y = axis.at(value);
            line(out, (self.left(), y), (self.right(), y), r#"class="grid""#);
            let number = axis::tick(value, exponent);
            let at = (self.left() - 8.0, y + 4.5);
            text(out, at, "end", r#"class="faint" font-size="12""#, &number);
        }
    }

    fn horizontal(&self, out: &mut String, axis: &Axis) {
        let floor = self.floor();
        line(
            out,
            (self.left(), floor),
            (self.right(), floor),
            r#"class="axis""#,
        );
        for value in axis.ticks(7, true) {
            let x = axis.at(value);
            line(out, (x, floor), (x, floor + 5.0), r#"class="axis""#);
            let number = axis::tick(value, 0);
            let at = (x, floor + 18.0);
            text(
                out,
                at,
                "middle",
                r#"class="faint" font-size="12""#,
                &number,
            );
        }
    }
}

/// The content of a curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve<'a> {
    pub(super) name: &'a str,
    /// The name of the horizontal axis.
    pub(super) below: &'a str,
    /// x, a whole number, and y.
    pub(super) points: &'a [(f64, f64)],
    /// The highest point, with a text above it.
    pub(super) mark: Option<(usize, &'a str)>,
}

/// Draws a curve; its vertical axis need not begin at 0.
pub(super) fn curve(out: &mut String, frame: Frame, curve: &Curve<'_>) {
    let xs = || curve.points.iter().map(|point| point.0);
    let ys = || curve.points.iter().map(|point| point.1);
    let across = Axis::of(xs(), 0.02, frame.left(), frame.right());
    let up = Axis::of(ys(), 0.06, frame.floor(), frame.top());
    let exponent = up.exponent();
    frame.words(out, &axis::title(curve.name, exponent), curve.below);
    frame.vertical(out, &up, exponent);
    frame.horizontal(out, &across);
    let placed: Vec<At> = curve
        .points
        .iter()
        .map(|&(x, y)| (across.at(x), up.at(y)))
        .collect();
    polyline(out, &placed, r#"class="curve""#);
    if placed.len() <= DOTS {
        for &at in &placed {
            circle(out, at, 3.0, r#"class="dot""#);
        }
    }
    if let Some((&at, words)) = curve
        .mark
        .and_then(|(index, words)| Some((placed.get(index)?, words)))
    {
        circle(out, at, 6.0, r#"class="mark""#);
        // Above the highest point, which the curve does not reach; moved inwards at the edges.
        let part = (at.0 - frame.left()) / (frame.right() - frame.left());
        let anchor = match part {
            ..0.1 => "start",
            0.9.. => "end",
            _ => "middle",
        };
        let style = r#"class="ink halo" font-size="12""#;
        text(out, (at.0, at.1 - 11.0), anchor, style, words);
    }
}

/// Draws one bar per cluster, in the clusters' colours; if there are more than [`NAMED`], the highest first.
pub(super) fn bars(out: &mut String, frame: Frame, heading: &str, heights: &[u64]) {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    let named = heights.len() <= NAMED;
    if !named {
        order = crate::order::order(heights.len(), &|a, b| heights[b].cmp(&heights[a]));
    }
    let up = Axis::from_zero(
        heights.iter().map(|&height| height as f64),
        frame.floor(),
        frame.top(),
    );
    let exponent = up.exponent();
    let below = if named {
        "cluster"
    } else {
        "clusters, the largest first"
    };
    frame.words(out, &axis::title(heading, exponent), below);
    frame.vertical(out, &up, exponent);
    let floor = frame.floor();
    let room = (frame.right() - frame.left()) / heights.len().max(1) as f64;
    // Every n-th number if they would not all fit.
    let every = (26.0 / room).ceil().max(1.0) as usize;
    for (place, &index) in order.iter().enumerate() {
        let x = frame.left() + place as f64 * room;
        let y = up.at(heights[index] as f64);
        let (gap, fill) = ((room * 0.12).min(4.0), colour::of(index));
        rectangle(
            out,
            (x + gap, y),
            (room - 2.0 * gap, floor - y),
            &format!(r#"fill="{fill}""#),
        );
        if named && place % every == 0 {
            let at = (x + room / 2.0, floor + 18.0);
            text(
                out,
                at,
                "middle",
                r#"class="faint" font-size="12""#,
                &index.to_string(),
            );
        }
    }
    line(
        out,
        (frame.left(), floor),
        (frame.right(), floor),
        r#"class="axis""#,
    );
}
