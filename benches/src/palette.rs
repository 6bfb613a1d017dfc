//! Palettes: only the product has a peer.

use crate::linear;
use tercet_host::measure::Guest;

/// Returns the guests that multiply the f32 weights themselves, so they read several times the bytes.
pub(crate) fn guests(operation: &str, rows: usize, cols: usize) -> Vec<Guest> {
    if operation.starts_with("matvec") {
        linear::guests(rows, cols)
    } else {
        Vec::new()
    }
}
