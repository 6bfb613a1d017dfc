//! The queue of `tercet-gpu`, compiled once more for loom: its own sources, and its models beside them.
//!
//! `tercet-gpu` itself takes minutes to build with loom's flag, for crates that no model needs. Without the flag this
//! is empty.
#![cfg(all(test, loom))]
#![allow(
    dead_code,
    unexpected_cfgs,
    unreachable_pub,
    unused_imports,
    reason = "what the models do not use, and its features, are the other crate's"
)]

#[path = "../../src/batch/mod.rs"]
mod batch;
#[path = "../../src/observe/mod.rs"]
mod observe;
#[path = "../../src/sync.rs"]
mod sync;
