//! Metrics in Prometheus' text format, version 0.0.4.

use std::fmt::Write as _;

use super::{EngineMetrics, LATENCIES, Metrics};

/// A counter: its name, what it counts, and its value.
type Family = (&'static str, &'static str, fn(&EngineMetrics) -> f64);

const FAMILIES: [Family; 8] = [
    ("elements_total", "Elements of calls done", |it| {
        it.elements as f64
    }),
    (
        "bytes_total",
        "Bytes that calls read and wrote at least",
        |it| it.bytes as f64,
    ),
    (
        "predicted_seconds_total",
        "Seconds predicted for calls done",
        |it| it.predicted_seconds,
    ),
    (
        "off_seconds_total",
        "Sum of how far calls were from their prediction",
        |it| it.error * it.seconds,
    ),
    (
        "launch_bound_total",
        "Calls predicted to spend most of their time starting",
        |it| it.launch_bound as f64,
    ),
    (
        "transfer_bound_total",
        "Calls predicted to spend most of their time on copies",
        |it| it.transfer_bound as f64,
    ),
    ("failures_total", "Calls that the engine failed at", |it| {
        it.failures as f64
    }),
    (
        "finished_total",
        "Calls finished after another engine failed",
        |it| it.finished as f64,
    ),
];

impl Metrics {
    /// In the text format that Prometheus scrapes; every name begins with `tercet_`.
    ///
    /// ```
    /// use tercet_gpu::dispatch::{Dispatcher, Settings};
    ///
    /// let dispatcher = Dispatcher::new(Settings::default());
    /// let text = dispatcher.metrics().to_prometheus();
    /// assert!(text.contains("# TYPE tercet_call_seconds histogram"));
    /// assert!(text.contains("tercet_refused_total 0"));
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(
                text,
                "# HELP tercet_{name} {help}\n# TYPE tercet_{name} {kind}"
            );
        };
        let labels =
            |it: &EngineMetrics| format!("operation=\"{}\",engine=\"{}\"", it.operation, it.engine);
        head(&mut text, "call_seconds", "histogram", "Time of calls done");
        for it in &self.engines {
            let labels = labels(it);
            let mut below = 0;
            for (end, count) in LATENCIES.iter().zip(&it.latencies) {
                below += count;
                let _ = writeln!(
                    text,
                    "tercet_call_seconds_bucket{{{labels},le=\"{end}\"}} {below}"
                );
            }
            // What a scrape sees must add up, also of calls that are being counted.
            let all: u64 = it.latencies.iter().sum();
            let _ = writeln!(
                text,
                "tercet_call_seconds_bucket{{{labels},le=\"+Inf\"}} {all}"
            );
            let _ = writeln!(text, "tercet_call_seconds_sum{{{labels}}} {}", it.seconds);
            let _ = writeln!(text, "tercet_call_seconds_count{{{labels}}} {all}");
        }
        for (name, help, value) in FAMILIES {
            head(&mut text, name, "counter", help);
            for it in &self.engines {
                let _ = writeln!(text, "tercet_{name}{{{}}} {}", labels(it), value(it));
            }
        }
        head(
            &mut text,
            "refused_total",
            "counter",
            "Calls whose input every engine refuses",
        );
        let _ = writeln!(text, "tercet_refused_total {}", self.refused);
        text
    }
}
