//! What the language model makes of all recordings.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use tercet_core::conformance::Digest;

use super::{recording, recordings};
use crate::motion::surprisal::{Found, LIMIT, Memory, PLAYED, watch};
use crate::motion::{Activity, Recordings, WINDOW, change, letter};

/// Plays recordings by their numbers.
fn found(numbers: impl IntoIterator<Item = usize>, digest: &mut Digest) -> Found {
    let mut memory = Box::new(Memory::new());
    let found = watch(&mut memory, |watch| {
        let mut found = Found::default();
        for number in numbers {
            found.play(watch, recording(number), digest).unwrap();
        }
        found
    });
    found.unwrap()
}

/// The first `count` recordings of an activity in the test half.
fn watched(activity: Activity, count: usize) -> impl Iterator<Item = usize> {
    (20..60)
        .filter(move |&number| recordings().get(number).unwrap().1 == activity)
        .take(count)
}

#[test]
fn the_text_is_the_letters_of_the_training_half() {
    let text = include_bytes!("../../../data/motion-text.txt");
    let mut lines = Vec::new();
    for place in 0..20 {
        let recording = recording(place / 2 + 10 * (place % 2));
        for index in 1..Recordings::LENGTH {
            let [before, after] = [index - 1, index].map(|index| recording.get(index).unwrap());
            lines.push(letter(&change(&before, &after)));
        }
        lines.push(b'\n');
    }
    assert!(lines == text);
}

#[test]
fn the_limit_is_five_quarters_of_what_the_held_out_lines_come_to() {
    let held_out = found((5..10).chain(15..20), &mut Digest::new());
    assert_eq!(held_out.largest * 5 / 4, LIMIT);
    assert_eq!(held_out.flagged, 0);
}

#[test]
fn only_what_was_not_learned_is_flagged() {
    let of = |activity| {
        let found = found(watched(activity, 10), &mut Digest::new());
        (found.windows, found.flagged, found.centibits())
    };
    let expected = [
        (600, 0, 218),
        (600, 0, 337),
        (600, 600, 1124),
        (600, 600, 855),
    ];
    assert_eq!(Activity::ALL.map(of), expected);
}

#[test]
fn boards_find_what_a_desk_finds() {
    let mut digest = Digest::new();
    let mut text = String::new();
    for activity in Activity::ALL {
        let found = found(watched(activity, PLAYED), &mut digest);
        text += &format!(
            "{}: {} letters of {}.{:02} bits, {} of {} windows flagged\n",
            activity.name(),
            found.letters,
            found.centibits() / 100,
            found.centibits() % 100,
            found.flagged,
            found.windows
        );
    }
    text += &format!("letters and surprisals {:016x}\n", digest.value());
    assert_eq!(text, include_str!("../../../snapshots/motion_model.txt"));
}

#[test]
fn readings_may_go_on_for_ever() {
    let mut memory = Box::new(Memory::new());
    watch(&mut memory, |watch| {
        let walking = recording(watched(Activity::Walking, 1).next().unwrap());
        for round in 0..12 {
            for index in 0..walking.len() {
                let verdict = watch.take(&walking.get(index).unwrap()).unwrap();
                assert_eq!(verdict.is_none(), round == 0 && index == 0);
                let complete = round > 0 || index >= WINDOW;
                assert_eq!(
                    verdict.is_some_and(|verdict| verdict.window.is_some()),
                    complete
                );
                assert!(!verdict.is_some_and(|verdict| verdict.flagged()));
            }
        }
    })
    .unwrap();
}
