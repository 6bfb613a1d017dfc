//! A language model reads recordings of motion, and flags what it did not expect: see
//! `tercet_firmware::motion::surprisal`. Prints what it found, and its costs.

#![no_std]
#![no_main]

use static_cell::ConstStaticCell;
use tercet_core::conformance::Digest;
use tercet_core::model::ModelError;
use tercet_firmware::clock::Counter;
use tercet_firmware::motion::surprisal::{Found, Memory, PLAYED, Watch, watch};
use tercet_firmware::motion::{Activity, Recording, Recordings};
use tercet_firmware::text::Text;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());

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
    let (Some(counter), Some(memory)) = (Counter::start(), MEMORY.try_take()) else {
        exit::failure()
    };
    let mut meter = stack::Meter::start();
    let counted = watch(memory, |watch| read(watch, &counter));
    let deepest = meter.lap();
    let instructions = match counted {
        Ok(Ok(instructions)) => instructions,
        Ok(Err(_)) => failed("the model came to something not finite"),
        Err(error) => failed(error.text()),
    };
    let line = Text::new().str("# instructions reading_64 ");
    line.number(instructions).end();
    report::footprint(size_of::<Memory>(), deepest);
    exit::success()
}

/// Plays the recordings, and returns the instructions of a reading.
fn read(watch: &mut Watch<'_>, counter: &Counter) -> Result<u32, ModelError> {
    let recordings = Recordings::new(&SAMPLES, &LABELS, COUNT);
    let mut digest = Digest::new();
    for activity in Activity::ALL {
        let of_activity = (TRAINED..COUNT)
            .filter_map(|number| recordings.get(number))
            .filter(|(_, own)| *own == activity);
        let mut found = Found::default();
        for (recording, _) in of_activity.take(PLAYED) {
            found.play(watch, recording, &mut digest)?;
        }
        let bits = found.centibits();
        let line = Text::new().str(activity.name()).str(": ");
        let line = line.number(found.letters).str(" letters of ");
        let line = line.number(bits / 100).str(".").number(bits / 10 % 10);
        let line = line.number(bits % 10).str(" bits, ");
        let line = line.number(found.flagged).str(" of ");
        line.number(found.windows).str(" windows flagged").end();
    }
    let line = Text::new().str("letters and surprisals ");
    line.hex(digest.value()).end();
    let recording = recordings
        .get(TRAINED)
        .map_or(Recording::default(), |(recording, _)| recording);
    count(watch, recording, counter)
}

/// Returns the instructions that a reading takes, from the sample to the logits.
fn count(
    watch: &mut Watch<'_>,
    recording: Recording<'_>,
    counter: &Counter,
) -> Result<u32, ModelError> {
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
