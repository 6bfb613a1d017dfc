//! The parts of every report: a heading, figures by name, a picture, tables; and its files.

use std::fmt::Write as _;

use super::svg::{At, escape, rectangle, text};
use crate::Error;
use crate::file::output::Output;
use crate::points::Destination;

/// Styles of the elements, within the picture so that it also works alone. Viewers without colour schemes show the
/// light one.
const STYLE: &str = "\
.paper{fill:#ffffff}.ink{fill:#1a1a1a}.faint{fill:#5a5a5a}.grid{stroke:#e6e6e6}.axis{stroke:#8a8a8a}\
.curve{fill:none;stroke:#2f7ed8;stroke-width:2}.dot{fill:#2f7ed8}.mark{fill:none;stroke:#e4572e;stroke-width:2}\
.halo{stroke:#ffffff;stroke-width:3;stroke-linejoin:round;paint-order:stroke}.edge{stroke:#ffffff}\
@media (prefers-color-scheme:dark){.paper{fill:#16181c}.ink{fill:#ececec}.faint{fill:#a8a8a8}.grid{stroke:#2b2e34}\
.axis{stroke:#70747c}.halo{stroke:#16181c}.edge{stroke:#16181c}}";

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:2rem auto;max-width:62rem;padding:0 1rem;font:16px/1.5 system-ui,'DejaVu Sans',Verdana,sans-serif;\
background:#ffffff;color:#1a1a1a}h1{font-size:1.5rem}\
svg{max-width:100%;height:auto}table{border-collapse:collapse;margin:1.5rem 0;font-variant-numeric:tabular-nums}\
caption{text-align:left;font-weight:bold;padding-bottom:.3rem}\
th,td{padding:.2rem .9rem .2rem 0;text-align:right;border-bottom:1px solid #dddddd}\
th:first-child,td:first-child{text-align:left}.facts td{text-align:left}\
@media (prefers-color-scheme:dark){body{background:#16181c;color:#ececec}th,td{border-color:#2b2e34}}";

/// Px of a picture's margin and of its heading.
pub(super) const MARGIN: f64 = 28.0;
pub(super) const HEADING: f64 = 66.0;
/// Px width of every picture.
pub(super) const WIDTH: f64 = 960.0;

/// Columns and rows below the picture; only in HTML.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) caption: &'static str,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A report, ready for writing.
#[derive(Clone, Debug)]
pub struct Page {
    pub(super) title: String,
    pub(super) facts: Vec<(String, String)>,
    pub(super) svg: String,
    pub(super) table: Table,
}

impl Page {
    /// Returns the picture: an SVG document.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Returns the picture with the figures and tables around it: an HTML document.
    pub fn html(&self) -> String {
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{0}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
            escape(&self.title)
        );
        out.push_str("<table class=\"facts\">\n");
        for (name, value) in &self.facts {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td></tr>",
                escape(name),
                escape(value)
            );
        }
        out.push_str("</table>\n");
        out.push_str(&self.svg);
        let _ = writeln!(
            out,
            "<table>\n<caption>{}</caption>",
            escape(self.table.caption)
        );
        row(&mut out, "th", self.table.columns.iter());
        for cells in &self.table.rows {
            row(&mut out, "td", cells.iter());
        }
        out.push_str("</table>\n</body>\n</html>\n");
        out
    }

    /// Writes the report in the format of the file's extension, `.svg` or `.html`; returns the file's size in bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another extension, and those of [`Output::create`].
    pub fn write(&self, to: Destination<'_>) -> Result<u64, Error> {
        let text = match to.path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => self.svg.clone(),
            Some("html" | "htm") => self.html(),
            _ => {
                let reason = "reports are written to .html or .svg; name such a file";
                return Err(Error::unsupported(to.path, reason));
            }
        };
        let mut output = Output::create(to.path, to.inputs.iter().copied(), to.overwrite)?;
        output.write(text.as_bytes())?;
        output.finish()
    }
}

fn row(out: &mut String, tag: &str, cells: impl Iterator<Item = impl AsRef<str>>) {
    out.push_str("<tr>");
    for cell in cells {
        let _ = write!(out, "<{tag}>{}</{tag}>", escape(cell.as_ref()));
    }
    out.push_str("</tr>\n");
}

/// Returns an SVG document of `body`, which is `height` px high without the heading.
pub(super) fn document(title: &str, line: &str, height: f64, body: &str) -> String {
    let height = HEADING + height + MARGIN;
    let mut out = format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h:.0}" width="{w}" height="{h:.0}" "#,
            r#"font-family="'DejaVu Sans',Verdana,sans-serif" font-size="13" role="img">"#,
            "\n<title>{t}</title>\n<style>{s}</style>\n"
        ),
        w = WIDTH,
        h = height,
        t = escape(title),
        s = STYLE,
    );
    rectangle(&mut out, (0.0, 0.0), (WIDTH, height), r#"class="paper""#);
    let mut heading = |at: At, style: &str, words: &str| {
        text(&mut out, at, "start", style, &shortened(words, 116));
    };
    let bold = r#"class="ink" font-size="18" font-weight="bold""#;
    heading((MARGIN, 32.0), bold, &shortened(title, 74));
    heading((MARGIN, 54.0), r#"class="faint""#, line);
    out.push_str(body);
    out.push_str("</svg>\n");
    out
}

/// Shortens a text to at most `most` characters by removing its middle.
fn shortened(words: &str, most: usize) -> String {
    let count = words.chars().count();
    if count <= most {
        return words.to_owned();
    }
    let half = (most - 1) / 2;
    let head: String = words.chars().take(half).collect();
    let tail: String = words.chars().skip(count - half).collect();
    format!("{head}…{tail}")
}
