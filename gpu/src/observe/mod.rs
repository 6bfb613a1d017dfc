//! Counters, gauges and histograms of the work in this process, recorded through the facade [`metrics`].
//!
//! [`crate::dispatch`], [`crate::batch`], [`crate::cache`] and the CUDA engine record their work to the recorder that
//! the program has installed. This is either the program's own, such as a Prometheus exporter's, or a [`Registry`],
//! which needs nothing else and writes Prometheus text and JSON. [`FAMILIES`] lists every name, with its labels, its
//! unit and a sentence; `grafana/tercet.json` beside this crate is a dashboard of them.
//!
//! ```
//! use tercet_core::block::Format;
//! use tercet_gpu::dispatch::{Dispatcher, Settings};
//! use tercet_gpu::observe::Registry;
//!
//! let registry = Registry::install()?;
//! let dispatcher = Dispatcher::new(Settings::default());
//! let mut floats = [0.0; 32];
//! dispatcher.decode(Format::Q8_0, &[1; 34], &mut floats)?;
//!
//! let text = registry.to_prometheus();
//! assert!(text.contains("# TYPE tercet_call_seconds histogram"));
//! assert!(text.lines().any(|line| line.starts_with("tercet_elements_total{") && line.ends_with(" 32")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Install the recorder first. A queue, a cache or a device looks for it when it is made, and a dispatcher when an
//! engine does its first call of an operation. Earlier work is only in their own figures
//! ([`Dispatcher::metrics`](crate::dispatch::Dispatcher::metrics), `stats`).
//!
//! # Throughput
//! Throughput is not a separate family. `rate(tercet_bytes_total[1m])` is bytes per second of wall time; divided by
//! `rate(tercet_call_seconds_sum[1m])` it is bytes per second of work. `tercet_elements_total` gives elements in the
//! same way, and `tercet_work_total` multiply-adds.
//!
//! # Cost
//! Without a recorder a handle is an empty option: six figures cost 4 ns, and a dispatcher's call of 32 values takes
//! 217 ns more than a direct one, including counters, span and choice. With a [`Registry`] the figures cost 44 ns and
//! the call 274 ns; with a [`Monitor`](crate::dispatch::Monitor) instead 262 ns. Measured on two cores of an Intel
//! Xeon, in the test profile, 23 November 2026:
//! `cargo test -p tercet-gpu --lib -- --ignored overhead --nocapture --test-threads 1`.
#![forbid(unsafe_code)]

mod bins;
mod export;
mod family;
mod level;
mod registry;

pub use bins::LATENCIES;
pub(crate) use export::Text;
pub use family::{FAMILIES, Family, Kind};
pub(crate) use family::{counter, histogram, of};
pub use level::Level;
pub use registry::{AlreadyRecording, Registry};
