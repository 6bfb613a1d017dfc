//! What a program prints about itself.

use crate::image;
use crate::text::Text;

/// Prints a digest as the conformance table has it, then what the program takes of the board, in bytes.
///
/// `state` is what lies in statics for the work, `stack` what the work took in calls.
pub fn report(name: &str, digest: u64, state: usize, stack: u32) {
    Text::new().str(name).str(" ").hex(digest).end();
    footprint(state, stack);
}

/// Prints what the program takes of the board, in bytes.
pub fn footprint(state: usize, stack: u32) {
    for (what, bytes) in [
        ("# flash ", image::flash()),
        ("# state ", state as u32),
        ("# stack ", stack),
    ] {
        Text::new().str(what).number(bytes).end();
    }
}
