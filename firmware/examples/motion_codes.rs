//! Computes the firmware's features of windows on a desktop. `data/motion.py` trains on them, so no other code
//! computes features.
//!
//! Reads samples, six little-endian i16 each, from standard input: consecutive recordings of 100. Writes a record per
//! window to standard output: 18 values (little-endian f32), then their 18 codes (i8). The argument is the number of
//! samples between the starts of two windows.

use std::io::{self, Read, Write};

use tercet_firmware::motion::{Recording, Recordings, Sample, WINDOW, codes, values};

fn main() -> io::Result<()> {
    let usage = || io::Error::other("motion_codes HOP <SAMPLES >RECORDS");
    let hop = std::env::args().nth(1).and_then(|hop| hop.parse().ok());
    let hop: usize = hop.filter(|&hop| hop > 0).ok_or_else(usage)?;
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let samples = Recording::new(&bytes);
    let samples: Vec<Sample> = (0..).map_while(|index| samples.get(index)).collect();
    let mut out = io::BufWriter::new(io::stdout());
    for recording in samples.chunks(Recordings::LENGTH) {
        for window in recording.windows(WINDOW).step_by(hop) {
            let values = values(window.iter());
            for value in values {
                out.write_all(&value.to_le_bytes())?;
            }
            for code in codes(&values) {
                out.write_all(&code.to_le_bytes())?;
            }
        }
    }
    out.flush()
}
