//! What the language model makes of all recordings.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use tercet_core::conformance::Digest;
use tercet_core::gguf::{Reader, SliceSink};

use super::{recording, recordings};
use crate::motion::surprisal::{Found, LEARNED, LIMIT, Memory, PLAYED, Watch, file, watch};
use crate::motion::{Activity, Adapter, Recordings, WINDOW, change, letter};

/// Lets the model read with what an adapter has learned.
fn with<R>(adapter: &mut Adapter, then: impl FnOnce(&mut Watch<'_>) -> R) -> R {
    watch(&mut Box::new(Memory::new()), adapter, then).unwrap()
}

/// Plays recordings by their numbers.
fn play(
    watch: &mut Watch<'_>,
    numbers: impl IntoIterator<Item = usize>,
    digest: &mut Digest,
) -> Found {
    let mut found = Found::default();
    for number in numbers {
        found.play(watch, recording(number), digest).unwrap();
    }
    found
}

/// Plays recordings to the model as it is in flash.
fn found(numbers: impl IntoIterator<Item = usize>) -> Found {
    let mut adapter = Adapter::new();
    with(&mut adapter, |watch| {
        play(watch, numbers, &mut Digest::new())
    })
}

/// The recordings of an activity in the test half.
fn of(activity: Activity) -> impl Iterator<Item = usize> {
    (20..60).filter(move |&number| recordings().get(number).unwrap().1 == activity)
}

/// Those that are watched after the first ones of running were learned.
fn afterwards(activity: Activity) -> impl Iterator<Item = usize> {
    let learned = match activity {
        Activity::Running => LEARNED,
        _ => 0,
    };
    of(activity).skip(learned)
}

/// Learns running.
fn learn(watch: &mut Watch<'_>, digest: &mut Digest) -> Found {
    watch.learn(true);
    let found = play(watch, of(Activity::Running).take(LEARNED), digest);
    watch.learn(false);
    found
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
    let held_out = found((5..10).chain(15..20));
    assert_eq!(held_out.largest * 5 / 4, LIMIT);
    assert_eq!(held_out.flagged, 0);
}

#[test]
fn only_what_was_not_learned_is_flagged() {
    let counts = |activity| {
        let found = found(of(activity));
        (found.windows, found.flagged, found.centibits())
    };
    let expected = [
        (600, 0, 214),
        (600, 0, 334),
        (600, 600, 1119),
        (600, 600, 852),
    ];
    assert_eq!(Activity::ALL.map(counts), expected);
}

#[test]
fn after_fifty_seconds_of_running_little_of_it_is_flagged_and_all_of_badminton() {
    let mut adapter = Adapter::new();
    let counts = with(&mut adapter, |watch| {
        learn(watch, &mut Digest::new());
        Activity::ALL.map(|activity| {
            let found = play(watch, afterwards(activity), &mut Digest::new());
            (found.windows, found.flagged, found.centibits())
        })
    });
    assert_eq!(
        counts,
        [
            (600, 0, 446),
            (600, 0, 461),
            (300, 26, 521),
            (600, 594, 668)
        ]
    );
}

#[test]
fn boards_find_and_learn_what_a_desk_does() {
    let mut digest = Digest::new();
    let mut text = String::new();
    let mut tell = |activity: Activity, when: &str, found: Found| {
        text += &format!(
            "{}{when}: {} letters of {}.{:02} bits, {} of {} windows flagged\n",
            activity.name(),
            found.letters,
            found.centibits() / 100,
            found.centibits() % 100,
            found.flagged,
            found.windows
        );
    };
    let mut adapter = Adapter::new();
    with(&mut adapter, |watch| {
        for activity in Activity::ALL {
            let found = play(watch, of(activity).take(PLAYED), &mut digest);
            tell(activity, "", found);
        }
        let found = learn(watch, &mut digest);
        tell(Activity::Running, ", learned", found);
        for activity in Activity::ALL {
            let numbers = afterwards(activity).take(PLAYED);
            tell(activity, ", afterwards", play(watch, numbers, &mut digest));
        }
    });
    for &number in adapter.numbers() {
        digest.u64(number as u64);
    }
    text += &format!(
        "letters, surprisals and what was learned {:016x}\n",
        digest.value()
    );
    assert_eq!(text, include_str!("../../../snapshots/motion_model.txt"));
}

#[test]
fn what_was_learned_is_kept_in_the_file_of_the_model() {
    let mut learned = Adapter::new();
    with(&mut learned, |watch| learn(watch, &mut Digest::new()));
    let own = Reader::new(file()).unwrap();
    let mut buffer = vec![0; file().len() + 16_384];
    let written = learned.write(&own, SliceSink::new(&mut buffer)).unwrap();
    let len = written.len();
    let kept = Reader::new(&buffer[..len]).unwrap();
    assert_eq!(Adapter::read(&own), None);
    assert_eq!(Adapter::read(&kept), Some(learned.clone()));
    let others = kept.metadata().filter(|(key, _)| *key != Adapter::KEY);
    assert!(others.eq(own.metadata()));
    assert!(kept.data() == own.data());
    assert!(
        kept.tensors()
            .map(|tensor| tensor.name)
            .eq(own.tensors().map(|tensor| tensor.name))
    );
    // Written again it is there once.
    let mut again = vec![0; len];
    Adapter::new()
        .write(&kept, SliceSink::new(&mut again))
        .unwrap();
    let forgot = Reader::new(&again).unwrap();
    assert_eq!(Adapter::read(&forgot), Some(Adapter::new()));
}

#[test]
fn readings_may_go_on_for_ever() {
    let walking = recording(of(Activity::Walking).next().unwrap());
    with(&mut Adapter::new(), |watch| {
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
    });
}
