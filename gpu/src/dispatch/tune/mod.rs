//! Measures the costs of operations on this machine, and stores them.
//!
//! [`tune`] times every operation on every engine over a grid of sizes within a budget and fits a
//! [`crate::dispatch::Cost`] to the times. [`Tuning`] is the file of these costs, for one machine ([`Key`]). [`check`]
//! compares choices with the times of engines at other sizes, and [`agreement`] compares the choices of two tunings.
//! [`overhead`] times what a call costs beside its work. [`curves`] draws costs.

mod call;
mod case;
mod check;
mod file;
mod key;
mod measure;
mod overhead;
mod show;
mod turns;

#[cfg(test)]
pub(crate) use check::check_up_to;
pub use check::{Agreement, Check, Differing, Regret, Timed, agreement, check};
pub use file::{Tuning, TuningError, path};
pub use key::Key;
pub use measure::{TuneOptions, tune};
pub use overhead::overhead;
pub use show::{crossings, curves};
