//! Counters, gauges and histograms of the work in this process, recorded through the facade [`metrics`].
//!
//! [`crate::dispatch`], [`crate::batch`] and the CUDA engine record their work to the recorder that the program has
//! installed, such as that of `metrics-exporter-prometheus`. [`FAMILIES`] lists every name, with its labels, its unit
//! and a sentence; `grafana/tercet.json` beside this crate is a dashboard of them, which needs histograms with the
//! buckets [`LATENCIES`] and [`SIZES`]:
//!
//! ```
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//! use tercet_core::block::Format;
//! use tercet_gpu::dispatch::{Dispatcher, Settings};
//! use tercet_gpu::observe::{LATENCIES, SIZES};
//!
//! let prometheus = PrometheusBuilder::new()
//!     .set_buckets(&SIZES)?
//!     .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCIES)?
//!     .install_recorder()?;
//! let dispatcher = Dispatcher::new(Settings::default());
//! let mut floats = [0.0; 32];
//! dispatcher.decode(Format::Q8_0, &[1; 34], &mut floats)?;
//!
//! let text = prometheus.render();
//! assert!(text.contains("# TYPE tercet_call_seconds histogram"));
//! assert!(text.lines().any(|line| line.starts_with("tercet_elements_total{") && line.ends_with(" 32")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Install the recorder first. A queue or a device looks for it when it is made, and a dispatcher when an engine does
//! its first call of an operation. Earlier work is only in their own figures
//! ([`Dispatcher::metrics`](crate::dispatch::Dispatcher::metrics), `stats`).
//!
//! # Throughput
//! Throughput is not a separate family. `rate(tercet_bytes_total[1m])` is bytes per second of wall time; divided by
//! `rate(tercet_call_seconds_sum[1m])` it is bytes per second of work. `tercet_elements_total` gives elements in the
//! same way, and `tercet_work_total` multiply-adds.
//!
//! # Cost
//! Without a recorder a handle is an empty option. What a dispatcher's call costs beside the direct one, with and
//! without a recorder, is printed by
//! `cargo test -p tercet-gpu --lib -- --ignored overhead --nocapture --test-threads 1`.
#![forbid(unsafe_code)]

mod family;
mod level;

pub use family::{FAMILIES, Family, Kind};
pub(crate) use family::{counter, histogram, of};
pub(crate) use level::Level;

/// Upper ends of buckets for histograms of times, in seconds.
pub const LATENCIES: [f64; 12] = [
    1e-6, 4e-6, 1.6e-5, 6.4e-5, 2.56e-4, 1.024e-3, 4.096e-3, 1.6384e-2, 6.5536e-2, 0.262_144,
    1.048_576, 4.194_304,
];

/// Upper ends of buckets for histograms of counts and bytes.
pub const SIZES: [f64; 16] = [
    1.0,
    2.0,
    4.0,
    8.0,
    16.0,
    32.0,
    64.0,
    128.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    1_048_576.0,
    16_777_216.0,
];
