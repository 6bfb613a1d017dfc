//! What a call took of memory is seen.
//!
//! The only test of its binary: the system counts for the whole process, and what another test gave back meanwhile
//! would hide it.

use std::hint::black_box;

use tercet_host::measure::Growth;

#[test]
fn a_large_buffer_shows() {
    let grown = Growth::of(|| {
        black_box(vec![1u8; 128 << 20]);
    });
    // Only Linux tells, and containers may hide it.
    if let Some(Growth { peak, added }) = grown {
        assert!(added >= 32 << 20 && peak >= added, "{added}, {peak}");
    }
}
