//! Names beside their colours.

use crate::report::svg::{At, rectangle, text};

/// Px of a row of names.
const ROW: f64 = 18.0;
/// Maximum px of a character, at the size of a legend.
const CHARACTER: f64 = 7.6;

/// Draws names in rows that are at most `width` wide; returns their height.
pub(super) fn draw(out: &mut String, at: At, width: f64, names: &[(String, String)]) -> f64 {
    let (mut x, mut y) = at;
    for (name, colour) in names {
        let room = 18.0 + name.chars().count() as f64 * CHARACTER + 14.0;
        if x > at.0 && x + room > at.0 + width {
            (x, y) = (at.0, y + ROW);
        }
        let fill = format!(r#"fill="{colour}""#);
        rectangle(out, (x, y), (12.0, 12.0), &fill);
        let style = r#"class="ink" font-size="12""#;
        text(out, (x + 17.0, y + 10.5), "start", style, name);
        x += room;
    }
    y + ROW - at.1
}
