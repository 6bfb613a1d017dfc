//! Elements of an SVG picture, appended to its text.
//!
//! A `style` contains the attributes for the look of an element, such as `stroke="#888888"` or `class="grid"`.
//! Positions and sizes are px from the upper left, written to a tenth.

use std::fmt::Write as _;

/// x and y.
pub(super) type At = (f64, f64);

/// Draws a straight line.
pub(super) fn line(out: &mut String, from: At, to: At, style: &str) {
    let _ = writeln!(
        out,
        r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" {style}/>"#,
        from.0, from.1, to.0, to.1
    );
}

/// Draws straight lines from point to point.
pub(super) fn polyline(out: &mut String, points: &[At], style: &str) {
    let _ = write!(out, r#"<polyline {style} points=""#);
    for (index, point) in points.iter().enumerate() {
        let gap = if index == 0 { "" } else { " " };
        let _ = write!(out, "{gap}{:.1},{:.1}", point.0, point.1);
    }
    out.push_str("\"/>\n");
}

/// Draws a circle around `at`.
pub(super) fn circle(out: &mut String, at: At, radius: f64, style: &str) {
    let _ = writeln!(
        out,
        r#"<circle cx="{:.1}" cy="{:.1}" r="{radius}" {style}/>"#,
        at.0, at.1
    );
}

/// Draws a rectangle from its upper left corner.
pub(super) fn rectangle(out: &mut String, at: At, size: At, style: &str) {
    let _ = writeln!(
        out,
        r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" {style}/>"#,
        at.0, at.1, size.0, size.1
    );
}

/// Draws a line of text on the base line through `at`; `anchor` (`start`, `middle` or `end`) is the part of the text
/// that is at `at`.
pub(super) fn text(out: &mut String, at: At, anchor: &str, style: &str, words: &str) {
    let _ = writeln!(
        out,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="{anchor}" {style}>{}</text>"#,
        at.0,
        at.1,
        escape(words)
    );
}

/// Escapes text for XML and HTML, in elements and in quoted attributes. Characters that XML cannot represent, which
/// file names may contain, become U+FFFD.
pub(super) fn escape(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_is_text_again() {
        assert_eq!(
            escape("a<b> & \"c\"\n\u{1b}[31m\u{ffff}é"),
            "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}[31m\u{fffd}é"
        );
    }
}
