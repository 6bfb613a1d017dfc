//! What a dispatched call costs beside the work itself.

use super::with_device;
use crate::dispatch::Settings;
use crate::dispatch::tune::overhead;

/// `cargo test --release -p tercet-gpu --lib -- --ignored overhead --nocapture`.
#[test]
#[ignore = "times this machine"]
fn overhead_of_a_call_is_below_a_microsecond() {
    let (dispatcher, _) = with_device(Settings::default());
    let seconds = overhead(&dispatcher).unwrap();
    println!("{:.0} ns more than direct", 1e9 * seconds);
    assert!(seconds <= 1e-6);
}
