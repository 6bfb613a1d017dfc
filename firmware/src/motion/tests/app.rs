//! The application's timing and states.

use std::vec::Vec;

use super::{NETWORK, Worn, recording, reports, wear};
use crate::motion::emulated::{Clock, Delay, Pin, Sensor};
use crate::motion::{App, Error, HOP, Memory, Phase, Report, WINDOW};

/// Plays another recording after the first.
fn play(app: &mut Worn<'_>, number: usize) -> Vec<Report> {
    app.i2c().replay(recording(number));
    app.cut();
    reports(app, 100)
}

#[test]
fn a_window_ends_after_40_samples_and_then_every_10() {
    wear(0, |app, clock| {
        let ends: Vec<usize> = (1..=100)
            .filter(|_| app.step().unwrap().is_some())
            .collect();
        let expected: Vec<usize> = (WINDOW..=100).step_by(HOP).collect();
        assert_eq!(ends, expected);
        // 100 periods after the sensor was set up, which took 110 ms.
        assert_eq!(clock.now(), 10_110_000_000);
    });
}

#[test]
fn nothing_is_flagged_before_watching() {
    wear(0, |app, _| {
        assert!(reports(app, 100).iter().all(|report| !report.flagged));
        assert_eq!(app.watch(), Err(Error::Unmeasured));
        assert_eq!(app.phase(), Phase::Learn);
        app.measure();
        assert_eq!(app.watch(), Err(Error::Unmeasured));
        assert!(play(app, 50).iter().all(|report| !report.flagged));
        assert_eq!(app.phase(), Phase::Measure);
        app.watch().unwrap();
        assert_eq!(app.phase(), Phase::Watch);
    });
}

#[test]
fn clusters_stand_still_once_learning_ends() {
    wear(0, |app, _| {
        reports(app, 100);
        app.measure();
        let distances = |reports: Vec<Report>| -> Vec<_> {
            let pairs = reports
                .iter()
                .map(|report| (report.cluster, report.distance));
            pairs.collect()
        };
        let measured = distances(play(app, 10));
        app.watch().unwrap();
        assert_eq!(distances(play(app, 10)), measured);
        let far = measured.iter().map(|&(_, distance)| distance).max();
        assert_eq!(app.limit(), 4 * far.unwrap());
    });
}

#[test]
fn a_cut_keeps_samples_apart() {
    let alone = wear(10, |app, _| reports(app, 100));
    let after = wear(0, |app, _| {
        reports(app, 57);
        play(app, 10)
    });
    for (alone, after) in alone.iter().zip(&after) {
        assert_eq!((alone.codes, alone.logits), (after.codes, after.logits));
    }
}

fn make<'a>(clock: &'a Clock, memory: &'a mut Memory) -> Worn<'a> {
    let sensor = Sensor::new(clock, recording(0));
    App::new(sensor, Pin::new(), Delay::new(clock), memory, NETWORK).unwrap()
}

#[test]
fn an_application_made_again_knows_what_the_first_learned() {
    let (clock, mut memory) = (Clock::new(), Memory::new());
    reports(&mut make(&clock, &mut memory), 100);
    let mut again = make(&clock, &mut memory);
    again.i2c().replay(recording(10));
    // The eighth seed.
    assert_eq!(reports(&mut again, 40)[0].cluster, 7);
    again.measure();
    drop(again);
    assert_eq!(make(&clock, &mut memory).phase(), Phase::Measure);
}

#[test]
fn files_of_other_networks_are_refused() {
    let try_file = |file: &[u8]| {
        let (clock, mut memory) = (Clock::new(), Memory::new());
        let sensor = Sensor::new(&clock, recording(0));
        App::new(sensor, Pin::new(), Delay::new(&clock), &mut memory, file).err()
    };
    assert_eq!(try_file(NETWORK), None);
    // 256 inputs, ten outputs.
    let digits = include_bytes!("../../../data/digits.gguf");
    assert_eq!(try_file(digits), Some(Error::Shape));
    // All except the bytes between the end of the last tensor and the next multiple of 32.
    for len in 0..NETWORK.len() - 16 {
        let error = try_file(&NETWORK[..len]);
        assert!(matches!(error, Some(Error::Network { .. })), "{len}");
    }
}

/// Checks the documented sizes of memory, on a desktop, whose words are twice as long.
#[test]
fn memory_is_what_is_promised() {
    assert!(size_of::<Memory>() <= 1448);
    let parts = size_of::<Sensor<'_>>() + size_of::<Pin>() + size_of::<Delay<'_>>();
    assert!(size_of::<Worn<'_>>() - parts <= 2 * 400);
}
