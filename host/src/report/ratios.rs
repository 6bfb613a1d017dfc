//! One row per case: how many times as long the others took, with a bar for each.

use super::colour;
use super::log_axis::{LogAxis, number};
use super::page::{self, HEADING, MARGIN, Page, Table, WIDTH};
use super::svg::{line, rectangle, text};

/// Px of names of cases, and of those of bars.
const NAMES: f64 = 236.0;
const LABELS: f64 = 176.0;
/// Px from bar to bar, of a bar, and between cases.
const ROW: f64 = 17.0;
const BAR: f64 = 11.0;
const BETWEEN: f64 = 12.0;
/// Px above the bars.
const HEAD: f64 = 26.0;
/// Px for the text right of the longest bar.
const WORDS: f64 = 70.0;

const SMALL: &str = r#"class="faint" font-size="11""#;

/// Times of others divided by our own, for the same work.
#[derive(Clone, Debug)]
pub struct Ratios {
    /// The heading.
    pub title: String,
    /// The line below it.
    pub line: String,
    /// Figures by name.
    pub facts: Vec<(String, String)>,
    /// The cases of the work.
    pub cases: Vec<RatioCase>,
}

/// One kind of work.
#[derive(Clone, Debug)]
pub struct RatioCase {
    /// Its name.
    pub name: String,
    /// Our own time, in seconds.
    pub seconds: f64,
    /// Others, each with its time divided by our own: above 1 it is slower. Without a positive ratio there is no bar.
    pub others: Vec<(String, f64)>,
}

impl Ratios {
    /// Returns the report: bars along a logarithmic axis, from 1, and the same as a table.
    pub fn page(&self) -> Page {
        let mut body = String::new();
        let height = self.draw(&mut body);
        Page {
            svg: page::document(&self.title, &self.line, height, &body),
            title: self.title.clone(),
            facts: self.facts.clone(),
            table: self.table(),
        }
    }

    fn draw(&self, out: &mut String) -> f64 {
        let (left, right) = (MARGIN + NAMES + LABELS, WIDTH - MARGIN - WORDS);
        let ratios = self
            .cases
            .iter()
            .flat_map(|case| &case.others)
            .map(|other| other.1);
        let across = LogAxis::of(ratios.chain([1.0]), 2.0, left, right);
        let mut labels: Vec<&str> = Vec::new();
        for (label, _) in self.cases.iter().flat_map(|case| &case.others) {
            if !labels.contains(&label.as_str()) {
                labels.push(label);
            }
        }
        let top = HEADING + HEAD;
        let height = |case: &RatioCase| ROW * case.others.len().max(1) as f64 + BETWEEN;
        let floor = top + self.cases.iter().map(height).sum::<f64>();
        for value in across.ticks(2.0, 10) {
            let x = across.at(value);
            line(out, (x, top - 4.0), (x, floor), r#"class="grid""#);
            text(out, (x, top - 9.0), "middle", SMALL, &number(value));
        }
        let one = across.at(1.0);
        line(out, (one, top - 4.0), (one, floor), r#"class="axis""#);
        let mut y = top;
        for case in &self.cases {
            let ink = r#"class="ink" font-size="12""#;
            text(out, (MARGIN, y + BAR), "start", ink, &case.name);
            for (row, (label, ratio)) in case.others.iter().enumerate() {
                let y = y + row as f64 * ROW;
                text(out, (left - 10.0, y + BAR - 1.0), "end", SMALL, label);
                if !(ratio.is_finite() && *ratio > 0.0) {
                    continue;
                }
                let place = labels.iter().position(|other| other == label).unwrap_or(0);
                let end = across.at(*ratio);
                // A bar of length zero would be invisible.
                let size = ((end - one).abs().max(1.5), BAR);
                let fill = format!(r#"fill="{}""#, colour::of(place));
                rectangle(out, (one.min(end), y), size, &fill);
                let at = (end.max(one) + 5.0, y + BAR - 1.0);
                text(out, at, "start", SMALL, &format!("{ratio:.2}×"));
            }
            y += height(case);
        }
        floor - HEADING
    }

    fn table(&self) -> Table {
        let rows = self.cases.iter().flat_map(|case| {
            case.others.iter().map(|(label, ratio)| {
                let known = ratio.is_finite() && *ratio > 0.0;
                vec![
                    case.name.clone(),
                    label.clone(),
                    format!("{:.4}", case.seconds * 1e3),
                    if known {
                        format!("{:.4}", case.seconds * ratio * 1e3)
                    } else {
                        "–".into()
                    },
                    if known {
                        format!("{ratio:.2}")
                    } else {
                        "–".into()
                    },
                ]
            })
        });
        Table {
            caption: "Best times of one run, in turns",
            columns: vec!["work", "beside", "own ms", "its ms", "ratio"],
            rows: rows.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_stands_for_each_ratio_there_is() {
        let others = vec![
            ("slow".to_owned(), 8.0),
            ("<fast>".to_owned(), 0.5),
            ("unknown".to_owned(), f64::NAN),
        ];
        let page = Ratios {
            title: "Times".to_owned(),
            line: "of one machine".to_owned(),
            facts: vec![("device".to_owned(), "one".to_owned())],
            cases: vec![RatioCase {
                name: "work".to_owned(),
                seconds: 0.001,
                others,
            }],
        }
        .page();
        // The background, and a bar for two of three.
        assert_eq!(page.svg().matches("<rect").count(), 3);
        for words in ["8.00×", "0.50×", "&lt;fast&gt;", "unknown"] {
            assert!(page.svg().contains(words), "{words}");
        }
        assert!(!page.svg().contains("NaN") && !page.html().contains("NaN"));
        assert!(page.html().contains("<td>8.0000</td><td>8.00</td>"));
    }

    #[test]
    fn nothing_measured_is_an_empty_picture() {
        let page = Ratios {
            title: "None".to_owned(),
            line: String::new(),
            facts: Vec::new(),
            cases: Vec::new(),
        }
        .page();
        assert!(page.svg().ends_with("</svg>\n") && !page.svg().contains("NaN"));
    }
}
