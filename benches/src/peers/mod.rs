//! The peers of Tercet.
//!
//! [`ggml`], [`vec_dot`] and [`naive`] run in this process. Python's peers each run in a separate [`process`], in a
//! pinned [`environment`], and a [`contest`] times them in turns with Tercet on the same files.

pub mod contest;
pub mod environment;
pub mod ggml;
pub mod naive;
pub mod npy;
pub mod process;
pub mod vec_dot;
