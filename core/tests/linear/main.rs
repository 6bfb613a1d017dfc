//! The linear layer: laws against plain arithmetic, requantizing, packing, refusals.

#[path = "../support/mod.rs"]
mod support;

mod five_trits;
mod laws;
mod matrices;
mod only;
mod packed;
mod refusals;
mod requantize;
