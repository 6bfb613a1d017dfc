//! Reads samples, six little-endian i16 each, from standard input, in recordings of 100. `data/motion_model.py` runs it.
//!
//! `motion_letters changes` writes the six int8 values of every change, `motion_letters letters` a line of letters for
//! every recording. `motion_letters surprisals` prints, for every ten recordings, the surprisals of the bundled model: the
//! mean, and the smallest and the largest sum of a window.

use std::io::{self, Read, Write};

use tercet_core::conformance::Digest;
use tercet_firmware::motion::surprisal::{Found, Memory, centibits, watch};
use tercet_firmware::motion::{Recording, Recordings, Sample, WINDOW, change, letter};

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
            let mut memory = Box::new(Memory::new());
            for (number, ten) in recordings.chunks(10).enumerate() {
                let found = watch(&mut memory, |watch| {
                    let mut found = Found::default();
                    for &recording in ten {
                        found.play(watch, recording, &mut Digest::new())?;
                    }
                    Ok::<_, tercet_core::model::ModelError>(found)
                });
                let found = found.map_err(|error| io::Error::other(error.text()))?;
                let found = found.map_err(io::Error::other)?;
                let bits = |sum, count| f64::from(centibits(sum, count)) / 100.0;
                writeln!(
                    out,
                    "recordings {:2} to {:2}: {:5.2} bits a reading; windows from {:5.2} to {:5.2}, {} to {}",
                    10 * number,
                    10 * number + ten.len() - 1,
                    bits(found.surprisal, found.letters),
                    bits(found.smallest, WINDOW as u32),
                    bits(found.largest, WINDOW as u32),
                    found.smallest,
                    found.largest,
                )?;
            }
        }
        _ => {
            return Err(io::Error::other(
                "motion_letters changes|letters|surprisals",
            ));
        }
    }
    Ok(())
}

/// Returns each two neighbouring samples.
fn pairs(recording: Recording<'_>) -> impl Iterator<Item = (Sample, Sample)> {
    (1..recording.len())
        .map_while(move |index| Some((recording.get(index - 1)?, recording.get(index)?)))
}
