//! What Tercet is compared with.

pub mod ggml;
pub mod naive;
pub mod python;
