//! Chooses the engine of a piece of work by its cost on this machine.
//!
//! All engines give the same bits, so any choice is correct, and a wrong one costs only time. A [`Dispatcher`] has a
//! [`Cost`] for each [`Operation`] and [`Engine`]:
//!
//! ```text
//! launch + items + transfer + max(bytes / bandwidth(bytes), work / rate(work))
//! ```
//!
//! `items` is a fixed cost per item of a call: per group of a quantizer, point, query or row. [`tune::tune`] (the
//! command `tercet tune`) measures the curves in a few seconds and keeps them in a file. Until then rough built-in
//! curves apply: they choose the kernels of the calling thread for a few elements, all threads for a hundred thousand,
//! and the device if the copies pay off or the data is already there ([`Dispatcher::resident_points`],
//! [`Location::Device`]).
//!
//! | item | purpose |
//! |---|---|
//! | [`Dispatcher`], [`Builder`], [`Settings`] | the calls; how to make a dispatcher; profiles, overrides, environment |
//! | [`ResidentPoints`], [`ResidentRows`], [`ResidentLayer`] | data for repeated calls, kept on the device too if that pays off |
//! | [`Dispatcher::run`] | runs your own piece of work, written once for [`AnyEngine`](crate::AnyEngine) |
//! | [`Dispatcher::explain`] | lists every candidate, its prediction, and why it lost |
//! | [`Dispatcher::metrics`] | calls, elements, bytes, time, predicted against actual; JSON and Prometheus text |
//! | [`Dispatcher::monitor`] | shows live where the time goes, what limits it, and the one change that would help most |
//! | [`Dispatcher::recommend`] | suggests what would be faster, in sentences with their numbers |
//! | [`tune`] | measures costs, stores them and draws them; [`tune::check`] compares choices with measured times, [`tune::agreement`] with the choices of another tuning |
//!
//! # Failures
//!
//! If every engine refuses an input, the error goes to the caller. If an engine itself fails (no room on the device, a
//! driver error, a lost device), the next best engine does the whole call again. One [`Notice`] reports this for the
//! call, and [`Metrics::fallbacks`] counts it. After three failures in a row, or when it is lost, the device is no
//! longer used. A missing driver or device is reported once.
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
//! A dispatcher can be shared (`&self`, cheap clones). Calls to the device wait for one another. [`Engine::Threads`] is
//! the rayon pool that the call is made in.

mod advice;
mod builder;
mod calls;
mod choose;
mod cost;
mod costs;
mod device;
mod dispatcher;
mod engine;
mod explain;
mod flow;
mod job;
pub mod metrics;
mod notice;
mod resident;
mod room;
mod run;
mod settings;
#[cfg(test)]
mod tests;
pub mod tune;

pub use advice::Advice;
pub use builder::{Builder, First};
pub use choose::Exclusion;
pub use cost::{Bound, Cost, Curve, CurveError, Prediction, Sample, Sweeps};
pub use costs::Costs;
pub use dispatcher::Dispatcher;
pub use engine::{Device, Engine};
pub use explain::{Explanation, Reason};
pub use job::{Job, Location, Operation, Phase};
pub use metrics::{Bottlenecks, EngineMetrics, Metrics, Monitor};
pub use notice::{DispatchError, Notice};
pub use resident::{Residency, ResidentLayer, ResidentPoints, ResidentRows};
pub use settings::{Preference, Profile, Settings, SettingsError, TuningFile, Verbose};
