//! Plain loops for any processor. The kernels are compared with them, and drivers use them.

mod dot;
pub mod linear;
mod nearest;

pub use dot::{dot, norm, squared_distance, ternary_dot};
pub use nearest::{Nearest, nearest};
