//! Features of windows.

use std::vec::Vec;

use super::recording;
use crate::motion::{AXES, FEATURES, HOP, Sample, WINDOW, codes, values};

fn window(number: usize) -> Vec<Sample> {
    let recording = recording(number);
    (0..WINDOW).map(|at| recording.get(at).unwrap()).collect()
}

#[test]
fn a_constant_on_an_axis_changes_nothing() {
    for number in [0, 10, 30, 50] {
        let plain = window(number);
        // 1 g along z, as a sensor at rest measures.
        let mut heavy = plain.clone();
        for sample in &mut heavy {
            sample[2] += 4098;
        }
        assert_eq!(values(plain.iter()), values(heavy.iter()));
    }
}

#[test]
fn values_are_deviation_step_and_range() {
    for number in 0..60 {
        let window = window(number);
        let found = values(window.iter());
        for axis in 0..AXES {
            let x: Vec<f64> = window.iter().map(|sample| sample[axis].into()).collect();
            let count = x.len() as f64;
            let mean = x.iter().sum::<f64>() / count;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let steps = x.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            let step = steps.sum::<f64>() / (count - 1.0);
            let most = x.iter().copied().fold(f64::MIN, f64::max);
            let range = most - x.iter().copied().fold(f64::MAX, f64::min);
            let expected = [variance.sqrt().sqrt(), step.sqrt(), range.sqrt()];
            for (part, expected) in expected.into_iter().enumerate() {
                let found = f64::from(found[part * AXES + axis]);
                // micromath's root is up to 6.1 % too large and never too small; deviation is the result of two roots.
                let most = expected * if part == 0 { 1.0607 * 1.03 } else { 1.0607 };
                assert!(
                    (expected * 0.999_999..=most * 1.000_001).contains(&found),
                    "{number} {part} {axis}: {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn the_loudest_window_does_not_wrap() {
    let samples = (0..WINDOW).map(|at| [if at % 2 == 0 { i16::MIN } else { i16::MAX }; AXES]);
    let samples: Vec<Sample> = samples.collect();
    let values = values(samples.iter());
    assert!(values.iter().all(|value| (181.0..272.0).contains(value)));
    assert_eq!(codes(&values)[..AXES], [127; AXES]);
}

/// The network was calibrated on the codes that this code computes from the recordings: scales, features and
/// recordings belong together.
#[test]
fn codes_of_training_are_those_calibrated_on() {
    let calibrated = include_bytes!("../../../data/motion-calibrate.npy");
    // 40 recordings of 7 windows; in an npy file the data comes last.
    let (_, calibrated) = calibrated.split_at(calibrated.len() - 40 * 7 * FEATURES);
    // In that file standing is first and walking third; here walking is second.
    for (number, there) in (0..10).chain(20..30).enumerate() {
        let recording = recording(number);
        let samples: Vec<Sample> = (0..).map_while(|at| recording.get(at)).collect();
        let windows = samples.windows(WINDOW).step_by(HOP);
        let found = windows.flat_map(|window| codes(&values(window.iter())));
        let expected = &calibrated[there * 7 * FEATURES..][..7 * FEATURES];
        assert!(
            found.eq(expected.iter().map(|&byte| byte as i8)),
            "{number}"
        );
    }
}

#[test]
fn stillness_is_the_lowest_code() {
    let still = [[-7; AXES]; WINDOW];
    let values_of_still = values(still.iter());
    // micromath's root of 0 is 8.1e-20.
    assert!(
        values_of_still
            .iter()
            .all(|&value| (0.0..1e-9).contains(&value))
    );
    assert_eq!(codes(&values_of_still), [-127; FEATURES]);
    assert_eq!(values([].iter()), [0.0; FEATURES]);
    assert_eq!(values(still[..1].iter()), [0.0; FEATURES]);
}
