//! Memory bandwidth by working set.
//!
//! Each thread of the rayon pool fills its own share of the buffers with random words, which faults every page in
//! before any timing, and then passes over it in one go, so that neither page faults nor the start of tasks are
//! timed. The loops run over 64-bit words in 16 independent lanes, which compilers turn into the target's baseline
//! vectors: enough to saturate memory; a build for wider vectors may read small sets from the nearest cache
//! faster. Stores are ordinary ones, as kernels use: a line written is first read by the machine, and that traffic
//! is not counted.

use rayon::{broadcast, current_num_threads};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tercet_core::number::Random;

/// Bytes per second that a pool of threads moves over one working set. Bytes read and bytes written both count.
#[derive(Clone, Copy, Debug)]
pub struct Bandwidth {
    /// The working set: bytes read or written in a pass, by all threads together.
    pub bytes: usize,
    /// Threads that shared it.
    pub threads: usize,
    /// Reading only: the ceiling of a dot product.
    pub read: f64,
    /// Reading four bytes for each written (f32 in, int8 out): the ceiling of a quantizer in one pass.
    pub narrow: f64,
    /// Writing four bytes for each read (int8 in, f32 out): the ceiling of a decoder.
    pub widen: f64,
}

/// Words in a step of the wide side; a quarter as many on the narrow side.
const STEP: usize = 16;
/// A round passes over the set until this many bytes are moved, so that a clock's tick does not show.
const ROUND: usize = 64 << 20;

/// Measures over a working set of `bytes`, rounded up to a few hundred bytes a thread, with the rayon pool it is
/// called in (`ThreadPool::install` chooses another): the best of `rounds` rounds, at least 1, after a warm-up.
///
/// The best, not the median: a ceiling is what the machine can do, and other load only lowers it. Each round moves
/// the set, or 64 MiB if it is smaller. Memory: 1.25 times `bytes`.
pub fn bandwidth(bytes: usize, rounds: usize) -> Bandwidth {
    let threads = current_num_threads();
    // Five units: four wide and one narrow when both sides are in use.
    let unit = bytes
        .div_ceil(threads * 5 * 8)
        .next_multiple_of(STEP)
        .max(STEP);
    let shares: Vec<_> = broadcast(|thread| Mutex::new(Share::new(thread.index() as u64, unit)));
    let moved = threads * unit * 5 * 8;
    let passes = ROUND.div_ceil(moved);
    let rate = |pass: fn(&mut Share)| {
        let round = || {
            let start = Instant::now();
            broadcast(|thread| {
                let share = shares[thread.index()].lock();
                let mut share = share.unwrap_or_else(PoisonError::into_inner);
                for _ in 0..passes {
                    pass(black_box(&mut share));
                }
            });
            start.elapsed().as_secs_f64()
        };
        round();
        let best = (0..rounds.max(1))
            .map(|_| round())
            .fold(f64::INFINITY, f64::min);
        (moved * passes) as f64 / best
    };
    Bandwidth {
        bytes: moved,
        threads,
        read: rate(Share::read),
        narrow: rate(Share::narrow),
        widen: rate(Share::widen),
    }
}

/// [`bandwidth`] at each of several working sets: steps in it show the caches.
pub fn curve(sets: &[usize], rounds: usize) -> Vec<Bandwidth> {
    sets.iter().map(|&bytes| bandwidth(bytes, rounds)).collect()
}

/// One thread's part of the buffers.
struct Share {
    /// Five units, all of them for reading, the first four otherwise.
    wide: Vec<u64>,
    /// One unit.
    narrow: Vec<u64>,
}

impl Share {
    fn new(seed: u64, unit: usize) -> Self {
        let mut random = Random::new(seed);
        let mut words = |len| (0..len).map(|_| random.next_u64()).collect();
        Self {
            wide: words(5 * unit),
            narrow: words(unit),
        }
    }

    fn read(&mut self) {
        let mut lanes = [0u64; STEP];
        for words in self.wide.as_chunks::<STEP>().0 {
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane ^= word;
            }
        }
        black_box(lanes);
    }

    fn narrow(&mut self) {
        let steps = self.wide.as_chunks::<STEP>().0;
        for (out, words) in self.narrow.as_chunks_mut::<4>().0.iter_mut().zip(steps) {
            for (lane, out) in out.iter_mut().enumerate() {
                *out = words[lane] ^ words[lane + 4] ^ words[lane + 8] ^ words[lane + 12];
            }
        }
    }

    fn widen(&mut self) {
        let steps = self.wide.as_chunks_mut::<STEP>().0;
        for (out, words) in steps.iter_mut().zip(self.narrow.as_chunks::<4>().0) {
            for part in out.as_chunks_mut::<4>().0 {
                *part = *words;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_covers_its_whole_share() {
        let mut share = Share::new(1, 4 * STEP);
        let before = share.narrow.clone();
        share.widen();
        let written = &share.wide[..16 * STEP];
        for (step, words) in written.as_chunks::<STEP>().0.iter().enumerate() {
            assert_eq!(words[12..], before[4 * step..][..4]);
        }
        share.narrow();
        // Four equal words cancel, in every place.
        assert!(share.narrow.iter().all(|&word| word == 0));
    }

    #[test]
    fn a_set_smaller_than_a_step_is_measured_at_a_plausible_rate() {
        for measured in curve(&[0, 1 << 20], 2) {
            assert!(measured.bytes >= measured.threads * 5 * 8 * STEP);
            // Slower than a disk or faster than any cache would be a mistake of arithmetic.
            for rate in [measured.read, measured.narrow, measured.widen] {
                assert!((1e7..1e14).contains(&rate), "{measured:?}");
            }
        }
    }
}
