//! Palettes: the product alone has a peer.

use crate::linear;
use tercet_host::measure::Guest;

/// The product of the f32 weights themselves, so several times the bytes.
pub(crate) fn guests(operation: &str, rows: usize, cols: usize) -> Vec<Guest> {
    if operation.starts_with("matvec") {
        linear::guests(rows, cols)
    } else {
        Vec::new()
    }
}
