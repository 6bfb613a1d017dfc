//! The names of all recorded figures.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Unit};

/// Counters, gauges or histograms with one name, which differ by their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name in exporters.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// Its meaning, in a sentence.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
}

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Has the value that it was last set to.
    Gauge,
    /// Number of values up to each of several ends, and their sum.
    Histogram,
}

impl Kind {
    /// Returns `counter`, `gauge` or `histogram`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Metadata of handles, which do nothing unless a recorder is installed now.
fn metadata() -> Metadata<'static> {
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()))
}

fn key(family: &Family, values: &[&str]) -> Key {
    debug_assert_eq!(family.labels.len(), values.len(), "{}", family.name);
    let labels = family.labels.iter().zip(values);
    let labels: Vec<_> = labels
        .map(|(&name, &value)| Label::new(name, value.to_owned()))
        .collect();
    Key::from_parts(family.name, labels)
}

/// Returns a counter of a family, with the values of its labels.
pub(crate) fn counter(family: &Family, values: &[&str]) -> Counter {
    metrics::with_recorder(|recorder| {
        let name = KeyName::from(family.name);
        recorder.describe_counter(name, Some(family.unit), family.help.into());
        recorder.register_counter(&key(family, values), &metadata())
    })
}

/// As [`counter`].
pub(crate) fn gauge(family: &Family, values: &[&str]) -> Gauge {
    metrics::with_recorder(|recorder| {
        let name = KeyName::from(family.name);
        recorder.describe_gauge(name, Some(family.unit), family.help.into());
        recorder.register_gauge(&key(family, values), &metadata())
    })
}

/// As [`counter`].
pub(crate) fn histogram(family: &Family, values: &[&str]) -> Histogram {
    metrics::with_recorder(|recorder| {
        let name = KeyName::from(family.name);
        recorder.describe_histogram(name, Some(family.unit), family.help.into());
        recorder.register_histogram(&key(family, values), &metadata())
    })
}

macro_rules! families {
    ($($(#[$on:meta])* $constant:ident: $kind:ident $unit:ident $name:literal $labels:expr, $help:literal;)+) => {
        /// Each family, as a constant.
        pub(crate) mod of {
            use super::{Family, Kind, Unit};
            $(
                $(#[$on])*
                pub(crate) const $constant: Family = Family {
                    name: $name,
                    kind: Kind::$kind,
                    unit: Unit::$unit,
                    help: $help,
                    labels: &$labels,
                };
            )+
        }

        /// All recorded families. Those of `tercet_device_` need the feature `cuda`.
        pub const FAMILIES: &[Family] = &[$($(#[$on])* of::$constant),+];
    };
}

families! {
    CALL_SECONDS: Histogram Seconds "tercet_call_seconds" ["operation", "engine"],
        "Time of calls done";
    BOUND_SECONDS: Histogram Seconds "tercet_bound_seconds" ["operation", "engine", "bound"],
        "Time of calls done, by what most of it was predicted to go to";
    PREDICTED_SECONDS: Histogram Seconds "tercet_predicted_seconds" ["operation", "engine"],
        "Time predicted for calls done, of whole flows for the engine's part";
    FLOW_SECONDS: Histogram Seconds "tercet_flow_seconds" ["operation", "engine"],
        "Time of calls done that were whole flows, files and floats with it";
    OFF_SECONDS: Histogram Seconds "tercet_off_seconds" ["operation", "engine"],
        "How far calls that were no flows were from their prediction";
    ELEMENTS: Counter Count "tercet_elements_total" ["operation", "engine"],
        "Elements of calls done";
    BYTES: Counter Bytes "tercet_bytes_total" ["operation", "engine"],
        "Bytes that calls read and wrote at least";
    WORK: Counter Count "tercet_work_total" ["operation", "engine"],
        "Multiply-adds of calls done, elements where nothing is multiplied";
    FAILURES: Counter Count "tercet_failures_total" ["operation", "engine"],
        "Calls that the engine failed at";
    FINISHED: Counter Count "tercet_finished_total" ["operation", "engine"],
        "Calls finished after another engine failed";
    REFUSED: Counter Count "tercet_refused_total" [],
        "Calls whose input every engine refuses";

    QUEUE_SUBMITTED: Counter Count "tercet_queue_submitted_total" ["queue"],
        "Requests taken";
    QUEUE_ENDED: Counter Count "tercet_queue_ended_total" ["queue", "outcome"],
        "Requests answered, failed, cancelled, or given up as the queue closed";
    QUEUE_REFUSED: Counter Count "tercet_queue_refused_total" ["queue"],
        "Requests not taken: the queue was full, or closed";
    QUEUE_BLOCKED: Counter Count "tercet_queue_blocked_total" ["queue"],
        "Requests that waited for room before they were taken or refused";
    QUEUE_DEPTH: Gauge Count "tercet_queue_depth" ["queue"],
        "Requests that wait";
    QUEUE_HIGH_WATER: Gauge Count "tercet_queue_depth_high_water" ["queue"],
        "The most requests that waited at once";
    QUEUE_CAPACITY: Gauge Count "tercet_queue_capacity" ["queue"],
        "Requests that may wait";
    QUEUE_FULL: Counter Count "tercet_queue_full_total" ["queue"],
        "Requests not taken since the queue was full";
    QUEUE_WAIT_SECONDS: Histogram Seconds "tercet_queue_wait_seconds" ["queue"],
        "Time that requests waited before their batch began";
    QUEUE_BATCH_REQUESTS: Histogram Count "tercet_queue_batch_requests" ["queue"],
        "Requests of each run of a batch";
    QUEUE_BATCH_SECONDS: Histogram Seconds "tercet_queue_batch_seconds" ["queue", "worker"],
        "Time of batches done";
    QUEUE_BATCH_PREDICTED_SECONDS: Histogram Seconds "tercet_queue_batch_predicted_seconds" ["queue", "worker"],
        "Time predicted for batches done";
    QUEUE_SPLIT: Counter Count "tercet_queue_split_total" ["queue"],
        "Batches that ran in parts for want of room";
    QUEUE_PANICS: Counter Count "tercet_queue_panics_total" ["queue"],
        "Panics of the work";
    QUEUE_HELPED: Counter Count "tercet_queue_helped_total" ["queue"],
        "Batches that a worker took over from one that was late";

    #[cfg(feature = "cuda")]
    DEVICE_BYTES: Gauge Bytes "tercet_device_memory_bytes" ["device"],
        "Bytes of buffers on a device";
    #[cfg(feature = "cuda")]
    DEVICE_HIGH_WATER: Gauge Bytes "tercet_device_memory_high_water_bytes" ["device"],
        "The most bytes of buffers that were on a device at once";
    #[cfg(feature = "cuda")]
    DEVICE_CAPACITY: Gauge Bytes "tercet_device_memory_capacity_bytes" ["device"],
        "Bytes of a device that its engine may use";
    #[cfg(feature = "cuda")]
    DEVICE_REFUSED: Counter Count "tercet_device_memory_refused_total" ["device"],
        "Buffers that a device had no room for";
    #[cfg(feature = "cuda")]
    DEVICE_QUEUED: Counter Count "tercet_device_queued_total" ["device", "what"],
        "Kernels, copies, fills, graphs and collectives that a device was given";
    #[cfg(feature = "cuda")]
    DEVICE_MOVED: Counter Bytes "tercet_device_moved_bytes_total" ["device", "what"],
        "Bytes that these copies, fills and collectives move";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_prometheus_expects_of_them() {
        let mut names: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        for family in FAMILIES {
            let Family {
                name, kind, unit, ..
            } = *family;
            let valid = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(
                name.starts_with("tercet_") && name.chars().all(valid),
                "{name}"
            );
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
            assert_eq!(name.contains("_seconds"), unit == Unit::Seconds, "{name}");
            assert_eq!(name.contains("bytes"), unit == Unit::Bytes, "{name}");
            assert!(
                !family.help.is_empty() && !family.help.ends_with('.'),
                "{name}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }
}
