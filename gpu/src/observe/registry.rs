//! A recorder that stores figures, and exports them as text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::Kind;
use super::bins::Bins;

/// Stores all figures that a process records through [`metrics`], Tercet's and others. It is a [`Recorder`], to be
/// installed ([`Registry::install`]) or lent to one thread ([`metrics::with_local_recorder`]). Clones are handles of
/// the same registry.
///
/// A histogram whose name ends in `_seconds`, or whose unit is a time, uses the bins of
/// [`LATENCIES`](super::LATENCIES); any other histogram uses powers of two. If a name is used for two kinds, the first
/// kind counts, and the other gets a handle that does nothing.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Mutex<Kept>>);

/// The descriptions and the recorded figures.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) families: BTreeMap<String, Recorded>,
}

/// A recorded family.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) kind: Kind,
    pub(super) unit: Option<Unit>,
    pub(super) help: SharedString,
    /// By the values of their labels.
    pub(super) series: BTreeMap<Labels, Handle>,
}

/// Names and values, in the given order.
pub(super) type Labels = Vec<(String, String)>;

#[derive(Clone, Debug)]
pub(super) enum Handle {
    Counter(Arc<AtomicU64>),
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Bins>),
}

/// The process already has a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRecording;

impl fmt::Display for AlreadyRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metrics of this process already have a recorder")
    }
}

impl std::error::Error for AlreadyRecording {}

impl Registry {
    /// Returns a registry that nobody records to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Installs a registry that the whole process records to from now on.
    ///
    /// # Errors
    /// [`AlreadyRecording`] if there is another recorder.
    pub fn install() -> Result<Self, AlreadyRecording> {
        let registry = Self::new();
        let installed = metrics::set_global_recorder(registry.clone());
        installed.map_err(|_| AlreadyRecording)?;
        Ok(registry)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Kept> {
        // A thread that panicked left whole families.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, kind: Kind, name: &KeyName, unit: Option<Unit>, help: SharedString) {
        let mut kept = self.lock();
        let family = kept.family(kind, name.as_str());
        if family.kind == kind {
            (family.unit, family.help) = (unit, help);
        }
    }

    fn handle(&self, kind: Kind, key: &Key) -> Handle {
        let mut kept = self.lock();
        let name = key.name();
        let family = kept.family(kind, name);
        let seconds = name.ends_with("_seconds") || family.unit == Some(Unit::Seconds);
        let new = || match kind {
            Kind::Counter => Handle::Counter(Arc::default()),
            Kind::Gauge => Handle::Gauge(Arc::default()),
            Kind::Histogram => Handle::Histogram(Arc::new(Bins::new(seconds))),
        };
        if family.kind != kind {
            return new();
        }
        let labels = key.labels();
        let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
        family
            .series
            .entry(labels.collect())
            .or_insert_with(new)
            .clone()
    }
}

impl Kept {
    fn family(&mut self, kind: Kind, name: &str) -> &mut Recorded {
        let families = &mut self.families;
        families.entry(name.to_owned()).or_insert_with(|| Recorded {
            kind,
            unit: None,
            help: SharedString::const_str(""),
            series: BTreeMap::new(),
        })
    }
}

impl Recorder for Registry {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(Kind::Counter, &key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(Kind::Gauge, &key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe(Kind::Histogram, &key, unit, description);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.handle(Kind::Counter, key) {
            Handle::Counter(counter) => Counter::from_arc(counter),
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.handle(Kind::Gauge, key) {
            Handle::Gauge(gauge) => Gauge::from_arc(gauge),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.handle(Kind::Histogram, key) {
            Handle::Histogram(bins) => Histogram::from_arc(bins),
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_one_name_and_labels_are_one_and_of_two_kinds_the_first() {
        let registry = Registry::new();
        metrics::with_local_recorder(&registry, || {
            for _ in 0..3 {
                metrics::counter!("mine_total", "of" => "a").increment(2);
            }
            metrics::counter!("mine_total", "of" => "b").increment(5);
            metrics::gauge!("mine_total").set(7.0);
            metrics::histogram!("took_seconds").record(3e-6);
        });
        let text = registry.to_prometheus();
        let expected = r#"# TYPE mine_total counter
mine_total{of="a"} 6
mine_total{of="b"} 5
# TYPE took_seconds histogram
took_seconds_bucket{le="0.000001"} 0
took_seconds_bucket{le="0.000004"} 1
"#;
        assert!(text.starts_with(expected), "{text}");
    }
}
