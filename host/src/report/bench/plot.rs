//! The field of a plot: a frame, its headings, its grid.

use crate::report::log_axis::LogAxis;
pub(super) use crate::report::log_axis::number;
use crate::report::page::{MARGIN, WIDTH};
use crate::report::svg::{line, text};

/// The place of a plot's lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) floor: f64,
}

/// Px around a field: heading, name of the vertical axis, numbers, name of the horizontal axis.
const TOP: f64 = 46.0;
const LEFT: f64 = 58.0;
const BOTTOM: f64 = 46.0;

const NUMBER: &str = r#"class="faint" font-size="12""#;

impl Field {
    /// Returns a plot across the page, `height` px high including everything around it.
    pub(super) fn new(y: f64, height: f64) -> Self {
        Self {
            left: MARGIN + LEFT,
            right: WIDTH - MARGIN,
            top: y + TOP,
            floor: y + height - BOTTOM,
        }
    }

    /// Draws the heading, and the units of the axes.
    pub(super) fn words(&self, out: &mut String, heading: &str, up: &str, across: &str) {
        let style = r#"class="ink" font-weight="bold""#;
        text(out, (MARGIN, self.top - 28.0), "start", style, heading);
        text(out, (MARGIN, self.top - 10.0), "start", NUMBER, up);
        let at = ((self.left + self.right) / 2.0, self.floor + 38.0);
        text(out, at, "middle", r#"class="faint""#, across);
    }

    /// Draws a number beside the field, and a line across it.
    pub(super) fn level(&self, out: &mut String, y: f64, number: &str) {
        line(out, (self.left, y), (self.right, y), r#"class="grid""#);
        text(out, (self.left - 8.0, y + 4.5), "end", NUMBER, number);
    }

    /// Draws a number below the field, and a mark on its floor.
    pub(super) fn mark(&self, out: &mut String, x: f64, number: &str) {
        let floor = self.floor;
        line(out, (x, floor), (x, floor + 5.0), r#"class="axis""#);
        text(out, (x, floor + 19.0), "middle", NUMBER, number);
    }

    /// Draws the floor.
    pub(super) fn ground(&self, out: &mut String) {
        let floor = self.floor;
        line(
            out,
            (self.left, floor),
            (self.right, floor),
            r#"class="axis""#,
        );
    }

    /// Returns the horizontal axis of a plot with ratios.
    pub(super) fn across(&self, values: impl Iterator<Item = f64>, base: f64) -> LogAxis {
        LogAxis::of(values, base, self.left, self.right)
    }

    /// Returns the vertical axis.
    pub(super) fn up(&self, values: impl Iterator<Item = f64>, base: f64) -> LogAxis {
        LogAxis::of(values, base, self.floor, self.top)
    }
}

/// Formats bytes as a power of 1,024: `32K`, `4M`.
pub(super) fn bytes(value: f64) -> String {
    let units = ["", "K", "M", "G", "T"];
    let power = ((value.log2() / 10.0 + 1e-9).floor().max(0.0) as usize).min(units.len() - 1);
    format!("{:.0}{}", value / 1024f64.powi(power as i32), units[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.125, "0.125"),
            (0.5, "0.5"),
            (1.0, "1"),
            (2.5, "2.5"),
            (4000.0, "4000"),
        ] {
            assert_eq!(number(value), text);
        }
        for (value, text) in [
            (512.0, "512"),
            (32768.0, "32K"),
            (1048576.0, "1M"),
            (3.5e9, "3G"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }
}
