//! From row-major codes to the layouts that are Tercet's own.

mod ternary_lanes;

pub(super) use ternary_lanes::check_ternary_lanes;
pub use ternary_lanes::ternary_lanes;
