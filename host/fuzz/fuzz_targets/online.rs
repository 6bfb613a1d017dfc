//! Saved states of online k-means: any bytes are refused, and change nothing, or are a state that goes on.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tercet_core::cluster::Online;

type State = Online<3, 2>;

fuzz_target!(|bytes: &[u8]| {
    let mut online = State::new();
    online.observe(&[5, -7]);
    let before = online.clone();
    if online.load(bytes).is_err() {
        assert_eq!(online, before);
        return;
    }
    let mut saved = [0; State::SAVED];
    online.save(&mut saved).expect("the length fits");
    assert_eq!(saved, bytes);
    for x in [[-128, -128], [127, 127], [0, 1]] {
        let seen = online.observe(&x);
        assert!((seen.label as usize) < online.centroids().len());
    }
    assert!(online.counts().iter().all(|&count| count < online.cap()));
});
