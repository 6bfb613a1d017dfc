//! What Tercet is compared with.
//!
//! [`ggml`], [`vec_dot`] and [`naive`] run in this process. Python's peers each run in a [`process`] of their own, in a pinned
//! [`environment`], and a [`contest`] times them in turns with Tercet on the same files.

pub mod contest;
pub mod environment;
pub mod ggml;
pub mod naive;
pub mod npy;
pub mod process;
pub mod vec_dot;
