//! Runs an image on an emulated board.

mod decode;
mod qemu;

pub use decode::Decoder;
pub use qemu::{Ending, Run, run};
