//! Tries margins between the usual distances and the threshold, on the training recordings alone. `data/motion.py`
//! runs it.
//!
//! Reads samples, six little-endian i16 each, from standard input: 10 recordings of standing, 10 of walking, 10 of
//! badminton, 100 samples each. There are 100 rounds: every rotation of standing with every one of walking. In each,
//! four recordings of both are learned from, three are measured, and the other three and all badminton are watched.
//! Prints per margin the number of flagged usual windows and of flagged badminton windows.

use std::io::{self, Read};

use tercet_core::cluster::Online;
use tercet_firmware::motion::{
    CLUSTERS, Codes, FEATURES, HOP, Recording, Recordings, Sample, WINDOW, codes, values,
};

/// Windows of one recording.
type Windows = Vec<Codes>;

fn main() -> io::Result<()> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let samples = Recording::new(&bytes);
    let samples: Vec<Sample> = (0..).map_while(|index| samples.get(index)).collect();
    let recordings = samples.chunks(Recordings::LENGTH).map(|recording| {
        let windows = recording.windows(WINDOW).step_by(HOP);
        windows
            .map(|window| codes(&values(window.iter())))
            .collect()
    });
    let recordings: Vec<Windows> = recordings.collect();
    let [standing, walking, badminton] = [0, 1, 2].map(|kind| {
        let part = recordings.get(10 * kind..10 * kind + 10);
        part.ok_or_else(|| io::Error::other("30 recordings are wanted"))
    });
    let (standing, walking, badminton) = (standing?, walking?, badminton?);
    println!("margin  usual flagged  badminton flagged");
    for margin in [1, 2, 3, 4, 5, 6, 8, 12] {
        let mut counts = [(0, 0); 2];
        for turn in 0..100 {
            let usual = rotated(standing, turn / 10).zip(rotated(walking, turn % 10));
            let usual: Vec<&Codes> = usual.flat_map(|(s, w)| s.iter().chain(w)).collect();
            // Each recording has seven windows.
            let (learned, rest) = usual.split_at(4 * 14);
            let (measured, watched) = rest.split_at(3 * 14);
            let mut clusters = Online::<CLUSTERS, FEATURES>::new();
            for codes in learned {
                clusters.observe(codes);
            }
            let distance = |codes: &Codes| clusters.predict(codes).map_or(0, |near| near.distance);
            let farthest = measured.iter().map(|codes| distance(codes)).max();
            let limit = farthest.unwrap_or(0) * margin;
            let mut count = |to: usize, codes: &Codes| {
                counts[to].0 += u32::from(distance(codes) > limit);
                counts[to].1 += 1;
            };
            watched.iter().for_each(|codes| count(0, codes));
            badminton.iter().flatten().for_each(|codes| count(1, codes));
        }
        let [(usual, of), (unusual, of_unusual)] = counts;
        println!("{margin:6}  {usual:6}/{of}  {unusual:9}/{of_unusual}");
    }
    Ok(())
}

/// Returns ten recordings, beginning with one of them.
fn rotated(recordings: &[Windows], from: usize) -> impl Iterator<Item = &Windows> {
    recordings.iter().cycle().skip(from).take(10)
}
