//! What `cargo firmware` and the command that starts it share: they look for what a run needs before anything is compiled for it. Nothing
//! here has dependencies, which would have to be compiled first.

pub mod needs;
// A file of `tercet verify`, which runs images too and is published without this package.
#[path = "../../../gpu/src/bin/tercet/verify/qemu.rs"]
pub mod qemu;
