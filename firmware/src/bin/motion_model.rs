//! A language model reads recordings of motion, and flags what it did not expect: see
//! `tercet_firmware::motion::surprisal`. Prints what it found, and its costs.

#![no_std]
#![no_main]

use static_cell::ConstStaticCell;
use tercet_core::conformance::Digest;
use tercet_core::model::ModelError;
use tercet_firmware::clock::Counter;
use tercet_firmware::motion::surprisal::{Found, LEARNED, Memory, PLAYED, Watch, watch};
use tercet_firmware::motion::{Activity, Adapter, Recording, Recordings};
use tercet_firmware::text::Text;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

static MEMORY: ConstStaticCell<(Memory, Adapter)> =
    ConstStaticCell::new((Memory::new(), Adapter::new()));

static SAMPLES: [u8; include_bytes!("../../data/motion.npy").len()] =
    *include_bytes!("../../data/motion.npy");
static LABELS: [u8; include_bytes!("../../data/motion-labels.npy").len()] =
    *include_bytes!("../../data/motion-labels.npy");
/// Recordings in [`SAMPLES`], and how many of them are of the training half.
const COUNT: usize = 60;
const TRAINED: usize = 20;

/// The reading whose instructions are printed. Behind the two tokens with which a line begins, the model then attends
/// to 64 positions.
const COUNTED: usize = 62;

#[entry]
fn main() -> ! {
    let (Some(counter), Some((memory, adapter))) = (Counter::start(), MEMORY.try_take()) else {
        exit::failure()
    };
    let mut meter = stack::Meter::start();
    let counted = watch(memory, adapter, |watch| {
        let mut digest = Digest::new();
        play(watch, "", 0, &mut digest)?;
        // The wearer says that this is usual, too.
        watch.learn(true);
        let mut found = Found::default();
        for recording in of(Activity::Running).take(LEARNED) {
            found.play(watch, recording, &mut digest)?;
        }
        tell(Activity::Running, ", learned", &found);
        watch.learn(false);
        play(watch, ", afterwards", LEARNED, &mut digest)?;
        for &number in watch.adapter().numbers() {
            digest.u64(number as u64);
        }
        let line = Text::new().str("letters, surprisals and what was learned ");
        line.hex(digest.value()).end();
        let reading = count(watch, &counter)?;
        watch.learn(true);
        let learned = count(watch, &counter)?;
        Ok([("reading_64", reading), ("learning_64", learned)])
    });
    let deepest = meter.lap();
    let counted = match counted {
        Ok(Ok(counted)) => counted,
        Ok(Err(ModelError::NotFinite { .. })) => failed("the model came to something not finite"),
        Ok(Err(_)) => failed("the file is no model that is run here"),
        Err(error) => failed(error.text()),
    };
    for (name, instructions) in counted {
        let line = Text::new().str("# instructions ").str(name);
        line.str(" ").number(instructions).end();
    }
    report::footprint(size_of::<(Memory, Adapter)>(), deepest);
    exit::success()
}

/// The recordings of an activity in the test half.
fn of(activity: Activity) -> impl Iterator<Item = Recording<'static>> {
    let recordings = Recordings::new(&SAMPLES, &LABELS, COUNT);
    (TRAINED..COUNT).filter_map(move |number| {
        let (recording, own) = recordings.get(number)?;
        (own == activity).then_some(recording)
    })
}

/// Plays recordings of each activity; of running those after the first `learned`.
fn play(
    watch: &mut Watch<'_>,
    when: &str,
    learned: usize,
    digest: &mut Digest,
) -> Result<(), ModelError> {
    for activity in Activity::ALL {
        let first = match activity {
            Activity::Running => learned,
            _ => 0,
        };
        let mut found = Found::default();
        for recording in of(activity).skip(first).take(PLAYED) {
            found.play(watch, recording, digest)?;
        }
        tell(activity, when, &found);
    }
    Ok(())
}

/// Prints what was found.
fn tell(activity: Activity, when: &str, found: &Found) {
    let bits = found.centibits();
    let line = Text::new().str(activity.name()).str(when);
    let line = line.str(": ").number(found.letters);
    let line = line.str(" letters of ").number(bits / 100).str(".");
    let line = line.number(bits / 10 % 10).number(bits % 10).str(" bits, ");
    let line = line.number(found.flagged).str(" of ");
    line.number(found.windows).str(" windows flagged").end();
}

/// Returns the instructions that a reading takes, from the sample to the logits.
fn count(watch: &mut Watch<'_>, counter: &Counter) -> Result<u32, ModelError> {
    let recording = of(Activity::Walking).next().unwrap_or_default();
    watch.cut();
    for sample in (0..COUNTED).map_while(|index| recording.get(index)) {
        watch.take(&sample)?;
    }
    let mut taken = Ok(None);
    let sample = recording.get(COUNTED).unwrap_or_default();
    let instructions = counter.count(&mut || taken = watch.take(&sample));
    taken.map(|_| instructions)
}

fn failed(reason: &str) -> ! {
    Text::error().str("nothing is read: ").str(reason).end();
    exit::failure()
}
