//! The recorded figures as text: the Prometheus format, version 0.0.4, and JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use super::bins::Counted;
use super::registry::{Handle, Recorded};
use super::{Kind, Registry};

/// A text in the Prometheus format, written piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// Begins a family; `kind` is the Prometheus term.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let Self(text) = self;
        if !help.is_empty() {
            let help = help.replace('\\', r"\\").replace('\n', r"\n");
            let _ = writeln!(text, "# HELP {name} {help}");
        }
        let _ = writeln!(text, "# TYPE {name} {kind}");
    }

    /// Writes a line: the name and its suffix, labels, the value.
    pub(crate) fn line(
        &mut self,
        name: &str,
        end: &str,
        labels: &[(&str, &str)],
        value: impl fmt::Display,
    ) {
        let Self(text) = self;
        let _ = write!(text, "{name}{end}");
        for (at, (label, value)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let value = escaped(value);
            let _ = write!(text, "{open}{label}=\"{value}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{close} {value}");
    }

    /// Writes the lines of a histogram: the number of values in each bin, one more for values beyond all ends, and
    /// their sum.
    pub(crate) fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        (ends, counts): (&[f64], &[u64]),
        sum: f64,
    ) {
        let mut below = 0;
        let bin = |text: &mut Self, end: &str, count: u64| {
            let mut labels = labels.to_vec();
            labels.push(("le", end));
            text.line(name, "_bucket", &labels, count);
        };
        for (end, count) in ends.iter().zip(counts) {
            below += count;
            bin(self, &end.to_string(), below);
        }
        // The numbers in a scrape must add up, even if values are being counted now.
        let all: u64 = counts.iter().sum();
        bin(self, "+Inf", all);
        self.line(name, "_sum", labels, Number(sum));
        self.line(name, "_count", labels, all);
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Escapes a label's value for quotes.
fn escaped(value: &str) -> Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        let value = value.replace('\\', r"\\").replace('"', "\\\"");
        value.replace('\n', r"\n").into()
    } else {
        value.into()
    }
}

/// Returns a valid Prometheus name: letters, digits, `_` and `:`.
fn plain(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == ':' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// Formats numbers as Prometheus does.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            number => number.fmt(f),
        }
    }
}

#[derive(Serialize)]
struct Families<'a> {
    families: Vec<FamilyJson<'a>>,
}

#[derive(Serialize)]
struct FamilyJson<'a> {
    name: &'a str,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    help: &'a str,
    series: Vec<SeriesJson<'a>>,
}

#[derive(Serialize)]
struct SeriesJson<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    value: ValueJson,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ValueJson {
    Counter {
        value: u64,
    },
    Gauge {
        value: f64,
    },
    Histogram {
        count: u64,
        sum: f64,
        /// Upper end and number of values of each bin; the last has no end.
        bins: Vec<(Option<f64>, u64)>,
    },
}

impl ValueJson {
    fn of(handle: &Handle) -> Self {
        match handle {
            Handle::Counter(value) => Self::Counter {
                value: value.load(Relaxed),
            },
            Handle::Gauge(value) => Self::Gauge {
                value: f64::from_bits(value.load(Relaxed)),
            },
            Handle::Histogram(bins) => {
                let Counted { ends, counts, sum } = bins.counted();
                let ends = ends.iter().copied().map(Some).chain([None]);
                Self::Histogram {
                    count: counts.iter().sum(),
                    sum,
                    bins: ends.zip(counts).collect(),
                }
            }
        }
    }
}

impl Registry {
    /// Returns all current figures, in the text format that Prometheus scrapes (version 0.0.4), sorted by name and
    /// labels.
    pub fn to_prometheus(&self) -> String {
        let mut text = Text::default();
        for (
            name,
            Recorded {
                kind, help, series, ..
            },
        ) in &self.lock().families
        {
            let name = plain(name);
            text.head(&name, kind.name(), help);
            for (labels, handle) in series {
                let labels: Vec<_> = labels
                    .iter()
                    .map(|(name, value)| (plain(name), value))
                    .collect();
                let labels: Vec<_> = labels
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                match handle {
                    Handle::Counter(value) => text.line(&name, "", &labels, value.load(Relaxed)),
                    Handle::Gauge(value) => {
                        let value = f64::from_bits(value.load(Relaxed));
                        text.line(&name, "", &labels, Number(value));
                    }
                    Handle::Histogram(bins) => {
                        let Counted { ends, counts, sum } = bins.counted();
                        text.histogram(&name, &labels, (ends, &counts), sum);
                    }
                }
            }
        }
        text.finish()
    }

    /// Returns the same as indented JSON. `families` is a list, each entry with `name`, `kind`, `unit`, `help` and
    /// `series`. Each series has `labels` and either `value` or `count`, `sum` and `bins`. A bin is a pair of its upper
    /// end (the last has none) and its number of values.
    pub fn to_json(&self) -> String {
        let kept = self.lock();
        let families = kept.families.iter().map(|(name, family)| {
            let series = family.series.iter().map(|(labels, handle)| SeriesJson {
                labels: labels
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect(),
                value: ValueJson::of(handle),
            });
            FamilyJson {
                name,
                kind: family.kind,
                unit: family.unit.map(|unit| unit.as_str()),
                help: &family.help,
                series: series.collect(),
            }
        });
        let families = Families {
            families: families.collect(),
        };
        // Numbers, names and lists: nothing in it can fail.
        serde_json::to_string_pretty(&families).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_hold_the_same_figures_and_nothing_that_would_break_them() {
        let registry = Registry::new();
        metrics::with_local_recorder(&registry, || {
            metrics::describe_gauge!("a.b", metrics::Unit::Bytes, "one\\two\nthree");
            metrics::gauge!("a.b", "file" => "c:\\\"x\"\n").set(f64::INFINITY);
            metrics::counter!("n_total").increment(3);
            metrics::histogram!("sizes").record(3.0);
            metrics::histogram!("sizes").record(1e12);
        });
        let text = registry.to_prometheus();
        for line in [
            r"# HELP a_b one\\two\nthree",
            "# TYPE a_b gauge",
            r#"a_b{file="c:\\\"x\"\n"} +Inf"#,
            "n_total 3",
            r#"sizes_bucket{le="2"} 0"#,
            r#"sizes_bucket{le="4"} 1"#,
            r#"sizes_bucket{le="+Inf"} 2"#,
            "sizes_sum 1000000000003",
            "sizes_count 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&registry.to_json()).unwrap();
        let family = |at: usize| &json["families"][at];
        assert_eq!(family(0)["unit"], "bytes");
        // JSON has no infinity.
        assert!(family(0)["series"][0]["value"].is_null());
        assert_eq!(family(1)["series"][0]["value"], 3);
        let sizes = &family(2)["series"][0];
        assert_eq!(
            (&sizes["count"], &sizes["bins"][2][1]),
            (&2.into(), &1.into())
        );
        assert_eq!(sizes["bins"][16], serde_json::json!([null, 1]));
    }
}
