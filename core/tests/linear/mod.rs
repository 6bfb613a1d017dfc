//! The linear layer: laws against plain arithmetic, requantizing, packing, refusals.

mod five_trits;
mod laws;
mod matrices;
mod only;
mod packed;
mod refusals;
mod requantize;
