//! Plain loops, for any processor: what the kernels beside them are compared with, and what drivers compute by.

mod dot;
pub mod linear;
mod nearest;

pub use dot::{dot, norm, squared_distance, ternary_dot};
pub use nearest::{Nearest, nearest};
