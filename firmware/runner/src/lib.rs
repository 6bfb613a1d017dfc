//! Code shared by `cargo firmware` and the command that starts it. Both look for the needs of a run before anything is
//! compiled for it. Nothing here has dependencies, because those would have to be compiled first.

pub mod needs;
// A file of `tercet verify`, which also runs images and is published without this package.
#[path = "../../../gpu/src/bin/tercet/verify/qemu.rs"]
pub mod qemu;
