//! Metrics in the Prometheus text format, version 0.0.4, with the same names as a recorder uses
//! ([`crate::observe::FAMILIES`]).

use super::{EngineMetrics, LATENCIES, Metrics};
use crate::dispatch::Bound;
use crate::observe::{Family, Text, of};

/// A family and its count for an operation on an engine.
type Counted = (Family, fn(&EngineMetrics) -> u64);

const COUNTERS: [Counted; 5] = [
    (of::ELEMENTS, |it| it.elements),
    (of::BYTES, |it| it.bytes),
    (of::WORK, |it| it.work),
    (of::FAILURES, |it| it.failures),
    (of::FINISHED, |it| it.finished),
];

/// A family of times that are known only as a sum and a number of calls: a summary in Prometheus.
type Summed = (Family, fn(&EngineMetrics) -> u64, fn(&EngineMetrics) -> f64);

const SUMS: [Summed; 3] = [
    (
        of::PREDICTED_SECONDS,
        |it| it.calls,
        |it| it.predicted_seconds,
    ),
    (of::FLOW_SECONDS, |it| it.flows, |it| it.flow_seconds),
    (
        of::OFF_SECONDS,
        |it| it.calls - it.flows,
        EngineMetrics::off_seconds,
    ),
];

fn labels(it: &EngineMetrics) -> [(&'static str, &'static str); 2] {
    [
        ("operation", it.operation.name()),
        ("engine", it.engine.name()),
    ]
}

impl Metrics {
    /// Returns the figures in the text format that Prometheus scrapes; every name begins with `tercet_`. A
    /// [`Registry`](crate::observe::Registry) has the same names, and also bins for the figures that are sums here.
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
        let mut text = Text::default();
        let family = of::CALL_SECONDS;
        text.head(family.name, family.kind.name(), family.help);
        for it in &self.engines {
            let bins = (&LATENCIES[..], &it.latencies[..]);
            text.histogram(family.name, &labels(it), bins, it.seconds);
        }
        let family = of::BOUND_SECONDS;
        text.head(family.name, "summary", family.help);
        for it in &self.engines {
            for bound in Bound::ALL {
                let [operation, engine] = labels(it);
                let labels = [operation, engine, ("bound", bound.name())];
                text.line(family.name, "_sum", &labels, it.bound_seconds.of(bound));
                text.line(family.name, "_count", &labels, it.bound_by(bound));
            }
        }
        for (family, count, seconds) in SUMS {
            text.head(family.name, "summary", family.help);
            for it in &self.engines {
                text.line(family.name, "_sum", &labels(it), seconds(it));
                text.line(family.name, "_count", &labels(it), count(it));
            }
        }
        for (family, count) in COUNTERS {
            text.head(family.name, family.kind.name(), family.help);
            for it in &self.engines {
                text.line(family.name, "", &labels(it), count(it));
            }
        }
        let family = of::REFUSED;
        text.head(family.name, family.kind.name(), family.help);
        text.line(family.name, "", &[], self.refused);
        text.finish()
    }
}

impl EngineMetrics {
    /// Returns the number of calls that were predicted to spend most of their time on `bound`.
    pub const fn bound_by(&self, bound: Bound) -> u64 {
        match bound {
            Bound::Launch => self.launch_bound,
            Bound::Transfer => self.transfer_bound,
            Bound::Memory => self.memory_bound,
            Bound::Compute => self.compute_bound,
        }
    }
}
