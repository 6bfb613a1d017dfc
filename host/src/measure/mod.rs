//! What this machine can do at most: the ceilings that a kernel's speed is held against.

mod bandwidth;

pub use bandwidth::{Bandwidth, bandwidth, curve};
