//! What tests of the CUDA engine share: the device they run on, and C libraries made on the spot.
//!
//! | variable | meaning |
//! |---|---|
//! | `TERCET_CUDA` | `device`: the machine's own driver and device instead of the emulated one |
//! | `TERCET_SKIPS`, `TERCET_REQUIRE` | as in `host/tests/support` |

// Each test binary compiles its own copy of this module and uses a part of it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary compiles it whole and uses a part"
)]

#[path = "../../../host/tests/support/mod.rs"]
pub mod host;

pub mod child;
pub mod cluster;
pub mod cudas;
pub mod draw;
pub mod emulator;
pub mod library;
pub mod operations;
pub mod quantize;
pub mod search;

pub use host::skip;
