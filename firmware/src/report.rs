//! The lines that a program prints about itself.

use crate::image;
use crate::text::Text;

/// Prints a digest in the form of the conformance table, then the memory of the board that the program takes, in
/// bytes.
///
/// `state` is the size of the statics for the work; `stack` is the stack that the work's calls took.
pub fn report(name: &str, digest: u64, state: usize, stack: u32) {
    Text::new().str(name).str(" ").hex(digest).end();
    footprint(state, stack);
}

/// Prints the memory of the board that the program takes, in bytes.
pub fn footprint(state: usize, stack: u32) {
    for (what, bytes) in [
        ("# flash ", image::flash()),
        ("# state ", state as u32),
        ("# stack ", stack),
    ] {
        Text::new().str(what).number(bytes).end();
    }
}
