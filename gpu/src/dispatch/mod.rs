//! Which engine does a piece of work, by what it costs on this machine.
//!
//! All engines give the same bits, so the choice is free, and a wrong one costs time only. A [`Dispatcher`] knows for each [`Operation`] and
//! [`Engine`] a [`Cost`]:
//!
//! ```text
//! launch + items + transfer + max(bytes / bandwidth(bytes), work / rate(work))
//! ```
//!
//! (items are what is begun anew within a call: groups of a quantizer, points, queries, rows) with curves that [`tune::tune`] (the command `tercet tune`) measures in some seconds and keeps in a file, and with rough ones built in until
//! then: a few elements by the calling thread's kernels, a hundred thousand by all threads, the device where copies pay or data lies there
//! already ([`Dispatcher::resident_points`], [`Place::Device`]).
//!
//! | | |
//! |---|---|
//! | [`Dispatcher`], [`Builder`], [`Settings`] | the calls; how it is made; profiles, overrides, environment |
//! | [`ResidentPoints`], [`ResidentRows`], [`ResidentLayer`] | data that calls come back to, on the device too where that pays |
//! | [`Dispatcher::run`] | a piece of work of one's own, written once for [`AnyEngine`](crate::AnyEngine) |
//! | [`Dispatcher::explain`] | every candidate, its prediction, why it lost |
//! | [`Dispatcher::metrics`] | calls, elements, bytes, time, predicted against actual; JSON and Prometheus text |
//! | [`Dispatcher::monitor`] | live: what the time goes to, what bounds it, and the one change that would help most |
//! | [`Dispatcher::recommend`] | what would be faster, in sentences with their numbers |
//! | [`tune`] | measuring, the file, pictures of the curves, [`tune::check`]: choices held against times, and [`tune::agreement`]: against another tuning's |
//!
//! # Failures
//!
//! What every engine refuses is the caller's error. Where an engine fails itself (no room on the device, a driver's error, a device that is
//! lost), the next best does the call from the start, and a [`Notice`] says so: one for the call, counted in [`Metrics::fallbacks`]. After three
//! failures in a row, or when it is lost, the device is left alone. No driver or no device is told once.
//!
//! ```
//! use tercet_gpu::dispatch::{Dispatcher, Engine, Job, Operation, Settings};
//!
//! let dispatcher = Dispatcher::new(Settings::default());
//! let job = Job::each(Operation::Decode, 64, 68, 256);
//! let explained = dispatcher.explain(&job);
//! assert!(matches!(explained.chosen, Some(Engine::Simd | Engine::Scalar)));
//! println!("{explained}");
//! ```
//!
//! # Threads
//!
//! A dispatcher is shared (`&self`, cheap clones). Calls to the device wait for one another. [`Engine::Threads`] is the rayon pool that the call
//! is made in.

mod builder;
mod calls;
mod choose;
mod cost;
mod costs;
mod device;
mod dispatcher;
mod engine;
mod explain;
mod job;
pub mod metrics;
mod notice;
mod recommend;
mod resident;
mod room;
mod run;
mod settings;
#[cfg(test)]
mod tests;
pub mod tune;

pub use builder::{Builder, First};
pub use choose::Out;
pub use cost::{Bound, Cost, Curve, CurveError, Prediction, Sample, Sweeps};
pub use costs::Costs;
pub use dispatcher::Dispatcher;
pub use engine::{Device, Engine};
pub use explain::{Explanation, Reason};
pub use job::{Job, Operation, Place};
pub use metrics::{Bottlenecks, EngineMetrics, Metrics, Monitor};
pub use notice::{DispatchError, Notice};
pub use recommend::Advice;
pub use resident::{Residency, ResidentLayer, ResidentPoints, ResidentRows};
pub use settings::{Profile, Settings, SettingsError, TuningFile, Verbose, Wish};
