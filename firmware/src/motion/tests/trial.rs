//! The outcome of all recordings.

use super::{NETWORK, recordings};
use crate::motion::emulated::{Clock, Delay, Pin, Sensor};
use crate::motion::{Activity, App, Counts, DIGEST, Memory, Phase, Recording, Trial};

fn trial() -> (Trial, [u32; 3]) {
    let (clock, mut memory) = (Clock::new(), Memory::new());
    let sensor = Sensor::new(&clock, Recording::default());
    let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), &mut memory, NETWORK).unwrap();
    let mut windows = [0; 3];
    let trial = Trial::run(&mut app, &recordings(), &mut |played| {
        windows[played.phase as usize] += played.counts.windows;
        assert!(played.phase == Phase::Watch || played.counts.flagged == 0);
    });
    (trial.unwrap(), windows)
}

#[test]
fn the_digest_is_that_of_every_board() {
    assert_eq!(trial().0.digest, DIGEST);
}

#[test]
fn every_recording_has_seven_windows() {
    let (trial, windows) = trial();
    assert_eq!(windows, [70, 70, 280]);
    assert_eq!(trial.counts.map(|counts| counts.windows), [70; 4]);
}

#[test]
fn what_was_not_learned_is_flagged_and_the_usual_is_not() {
    let (trial, _) = trial();
    let flagged = trial.counts.map(|counts| counts.flagged);
    assert_eq!(flagged, [1, 1, 70, 70]);
    assert_eq!(trial.recall(Activity::Badminton), 1000);
    // 70 of 72.
    assert_eq!(trial.precision(Activity::Badminton), 972);
    // 278 of 280.
    assert_eq!(trial.accuracy(), 992);
}

#[test]
fn figures_are_of_the_counts() {
    let counts = |windows, flagged, right| Counts {
        windows,
        flagged,
        right,
    };
    let trial = Trial {
        counts: [
            counts(10, 1, 10),
            counts(10, 2, 9),
            counts(0, 0, 0),
            counts(8, 6, 4),
        ],
        limit: 0,
        digest: 0,
    };
    assert_eq!(trial.recall(Activity::Badminton), 750);
    assert_eq!(trial.precision(Activity::Badminton), 666);
    assert_eq!(trial.accuracy(), 821);
    // No windows at all.
    assert_eq!(trial.recall(Activity::Running), 0);
    assert_eq!(trial.precision(Activity::Running), 0);
}
