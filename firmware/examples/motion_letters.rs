//! Reads samples, six little-endian i16 each, from standard input, in recordings of 100. `data/motion_model.py` runs it.
//!
//! `motion_letters changes` writes the six int8 values of every change, `motion_letters letters` a line of letters for
//! every recording. `motion_letters surprisals` prints, for every five recordings, the surprisals of the bundled model: the
//! mean, the smallest and the largest sum of a window, and the number of windows that are flagged; and again after it has
//! learned from the first half of the third ten. `motion_letters learned` writes the file of the model with what it learns
//! from all recordings.

use std::io::{self, Read, Write};

use tercet_core::conformance::Digest;
use tercet_core::gguf::{Reader, SliceSink};
use tercet_firmware::motion::surprisal::{Found, Memory, Watch, centibits, file, watch};
use tercet_firmware::motion::{Adapter, Recording, Recordings, Sample, WINDOW, change, letter};

/// Bytes of a recording.
const RECORDING: usize = Recordings::LENGTH * size_of::<Sample>();

fn main() -> io::Result<()> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let recordings: Vec<Recording<'_>> = bytes.chunks(RECORDING).map(Recording::new).collect();
    let mut out = io::stdout().lock();
    match std::env::args().nth(1).as_deref() {
        Some("changes") => {
            for recording in recordings {
                for (before, after) in pairs(recording) {
                    out.write_all(&change(&before, &after).map(|code| code as u8))?;
                }
            }
        }
        Some("letters") => {
            for recording in recordings {
                let letters =
                    pairs(recording).map(|(before, after)| letter(&change(&before, &after)));
                out.write_all(&letters.chain([b'\n']).collect::<Vec<u8>>())?;
            }
        }
        Some("surprisals") => {
            let (mut memory, mut adapter) = (Box::new(Memory::new()), Adapter::new());
            let told = watch(&mut memory, &mut adapter, |watch| {
                tell(&mut out, watch, &recordings)?;
                watch.learn(true);
                play(watch, recordings.iter().skip(20).take(5))?;
                watch.learn(false);
                writeln!(out, "after the first five of running were learned:")?;
                tell(&mut out, watch, &recordings)
            });
            told.map_err(|error| io::Error::other(error.text()))??;
        }
        Some("learned") => {
            let (mut memory, mut adapter) = (Box::new(Memory::new()), Adapter::new());
            let told = watch(&mut memory, &mut adapter, |watch| {
                watch.learn(true);
                play(watch, &recordings)
            });
            told.map_err(|error| io::Error::other(error.text()))??;
            let mut bytes = vec![0; file().len() + 16_384];
            let own = Reader::new(file()).map_err(io::Error::other)?;
            let sink = adapter.write(&own, SliceSink::new(&mut bytes));
            out.write_all(sink.map_err(io::Error::other)?.written())?;
        }
        _ => {
            return Err(io::Error::other(
                "motion_letters changes|letters|surprisals|learned",
            ));
        }
    }
    Ok(())
}

/// Prints what the model makes of every five recordings.
fn tell(
    out: &mut impl Write,
    watch: &mut Watch<'_>,
    recordings: &[Recording<'_>],
) -> io::Result<()> {
    for (number, five) in recordings.chunks(5).enumerate() {
        let found = play(watch, five)?;
        let bits = |sum, count| f64::from(centibits(sum, count)) / 100.0;
        writeln!(
            out,
            "recordings {:2} to {:2}: {:5.2} bits a letter; windows from {:5.2} to {:5.2}, {} to {}; {} of {} flagged",
            5 * number,
            5 * number + five.len() - 1,
            bits(found.surprisal, found.letters),
            bits(found.smallest, WINDOW as u32),
            bits(found.largest, WINDOW as u32),
            found.smallest,
            found.largest,
            found.flagged,
            found.windows
        )?;
    }
    Ok(())
}

/// Lets the model read recordings.
fn play<'r, 'a: 'r>(
    watch: &mut Watch<'_>,
    recordings: impl IntoIterator<Item = &'r Recording<'a>>,
) -> io::Result<Found> {
    let mut found = Found::default();
    for &recording in recordings {
        let played = found.play(watch, recording, &mut Digest::new());
        played.map_err(io::Error::other)?;
    }
    Ok(found)
}

/// Returns each two neighbouring samples.
fn pairs(recording: Recording<'_>) -> impl Iterator<Item = (Sample, Sample)> {
    (1..recording.len())
        .map_while(move |index| Some((recording.get(index - 1)?, recording.get(index)?)))
}
