//! Checks that Tercet does the same work on a device as on the processor, and as its peers, if they run without a
//! device.

use crate::support;
use tercet_benches::peers::contest::{Effort, Peers, cuda, json, measure, picture};
use tercet_benches::peers::process::Programs;
use tercet_core::block::Format;

/// One turn each: the times are meaningless.
const EFFORT: Effort = Effort {
    rounds: 1,
    turn: 0.0,
    seconds: 0.0,
};

#[test]
fn everyone_does_the_same_work_on_the_device() {
    let Some(_device) = support::emulator::device() else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("tercet-peers-cuda-{}", std::process::id()));
    let mut peers = Peers::new(Programs::default());
    let mut rows = Vec::new();
    for event in cuda::events(true) {
        let case = (event.case)(&folder).expect("the device has room");
        rows.extend(measure(case, &mut peers, EFFORT).expect("nobody's process ends"));
    }
    for row in &rows {
        assert!(row.refused.is_empty(), "{}: {:?}", row.name, row.refused);
        let labels: Vec<&str> = row.peers.iter().map(|peer| &*peer.0).collect();
        let bound = "copy on the device";
        let expected: &[&str] = match row.name.starts_with("k-means") {
            true => &["Tercet, mma", "Tercet, wgmma", "Tercet, processor", bound],
            false => &["Tercet, processor", bound],
        };
        assert_eq!(labels, expected, "{}", row.name);
        let words = ["same", "inertia 1.00000 of its"];
        for (label, _, same) in &row.peers[..expected.len() - 1] {
            assert!(
                words.iter().any(|word| same.starts_with(word)),
                "{}, {label}: {same}",
                row.name
            );
        }
    }
    let of = |word: &str| rows.iter().filter(|row| row.name.contains(word)).count();
    assert_eq!(
        ["absmean", "int8 rows", "encode", "matmat", "k-means", "top"].map(of),
        [1, 1, Format::ENCODED.len(), 4, 1, 1]
    );
    assert_eq!(json(&rows).as_array().map(Vec::len), Some(rows.len()));
    let page = picture("Times", "of one run", &[], &rows);
    assert!(page.svg().contains("copy on the device"));
}
