//! Memory bandwidth by working set.
//!
//! Each thread of the rayon pool fills its own share of the buffers with random words, which faults every page in
//! before any timing, and then passes over it. Threads start together and time themselves, so that neither page faults
//! nor the start of tasks are timed. Loads and stores are as wide as the backend has them.

use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::{broadcast, current_num_threads};
use serde::Serialize;
use tercet_core::number::Random;

use super::clock::gather;
use crate::simd::Backend;
use crate::simd::stream::{Line, Stream};

/// A mix of reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Reads only: the ceiling of a product.
    Read,
    /// Writes only.
    Write,
    /// A byte written for each read.
    Copy,
    /// A byte written for four read, f32 in and int8 out: the ceiling of a quantizer's last pass.
    Narrow,
    /// Four bytes written for each read, int8 in and f32 out: the ceiling of a decoder.
    Widen,
}

impl Traffic {
    /// Every mix.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Copy,
        Self::Narrow,
        Self::Widen,
    ];

    /// Its name, in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Narrow => "read 4 : write 1",
            Self::Widen => "read 1 : write 4",
        }
    }
}

/// Bytes a second, those read and those written both counted. A line that an ordinary store first reads from memory is
/// counted once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// By plain loads and stores.
    pub plain: f64,
    /// By loads with software prefetch and by non-temporal stores, which pass the caches by. As `plain` on machines that this
    /// crate has no such loop for.
    pub streamed: f64,
}

impl Rates {
    /// The larger one: the ceiling.
    pub const fn best(&self) -> f64 {
        self.plain.max(self.streamed)
    }

    /// Each the larger of both.
    pub(super) const fn or_better(self, other: Self) -> Self {
        Self {
            plain: self.plain.max(other.plain),
            streamed: self.streamed.max(other.streamed),
        }
    }
}

/// What a pool of threads moves over one working set.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bandwidth {
    /// The working set: bytes read or written in a pass, by all threads together.
    pub bytes: usize,
    /// Threads that shared it.
    pub threads: usize,
    /// Reading.
    pub read: Rates,
    /// Writing.
    pub write: Rates,
    /// Copying.
    pub copy: Rates,
    /// Reading four for each written.
    pub narrow: Rates,
    /// Writing four for each read.
    pub widen: Rates,
}

impl Bandwidth {
    /// The rates of a mix.
    pub const fn of(&self, traffic: Traffic) -> Rates {
        match traffic {
            Traffic::Read => self.read,
            Traffic::Write => self.write,
            Traffic::Copy => self.copy,
            Traffic::Narrow => self.narrow,
            Traffic::Widen => self.widen,
        }
    }
}

/// A round passes over the set until this many bytes are moved, so that neither a clock's tick nor the start shows; short
/// enough that some rounds are free of other load, as the best of what is held against them was: that is a run, or 0.1 ms of them.
const ROUND: usize = 4 << 20;
/// The fewest rounds.
const ROUNDS: u32 = 3;
/// Lines in a unit: what halves and fifths divide.
const UNIT: usize = 10;

/// Measures over a working set of `bytes`, rounded up to less than 2 KiB a thread, with the rayon pool it is
/// called in (`ThreadPool::install` chooses another): for each mix the best of the rounds that fit `budget`, at least 3, after a
/// warm-up.
///
/// The best, not the median: a ceiling is what the machine can do, and other load only lowers it. Each round moves
/// the set, or 4 MiB if it is smaller. Memory: `bytes`.
pub fn bandwidth(backend: Backend, bytes: usize, budget: Duration) -> Bandwidth {
    let shares = Shares::new(bytes);
    let rates = |traffic| shares.rates(backend, traffic, budget);
    Bandwidth {
        bytes: shares.bytes(),
        threads: shares.0.len(),
        read: rates(Traffic::Read),
        write: rates(Traffic::Write),
        copy: rates(Traffic::Copy),
        narrow: rates(Traffic::Narrow),
        widen: rates(Traffic::Widen),
    }
}

/// [`bandwidth`] of one mix alone.
pub fn rates(backend: Backend, traffic: Traffic, bytes: usize, budget: Duration) -> Rates {
    Shares::new(bytes).rates(backend, traffic, budget)
}

/// [`bandwidth`] at each of several working sets: steps in it show the caches.
pub fn curve(backend: Backend, sets: &[usize], budget: Duration) -> Vec<Bandwidth> {
    sets.iter()
        .map(|&bytes| bandwidth(backend, bytes, budget))
        .collect()
}

/// Each thread's part of the working set, of equal length.
struct Shares(Vec<Mutex<Vec<Line>>>);

impl Shares {
    fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(current_num_threads() * UNIT * size_of::<Line>());
        // Odd, so that the two sides of a pass never lie a multiple of 4 KiB apart, where processors take a load for
        // one that waits on a store.
        let lines = (units | 1) * UNIT;
        Self(broadcast(|thread| {
            let mut random = Random::new(thread.index() as u64);
            let mut words = || Line([(); 8].map(|()| random.next_u64()));
            Mutex::new((0..lines).map(|_| words()).collect())
        }))
    }

    fn bytes(&self) -> usize {
        let share = self.0.first().map_or(0, |share| lock(share).len());
        self.0.len() * share * size_of::<Line>()
    }

    fn rates(&self, backend: Backend, traffic: Traffic, budget: Duration) -> Rates {
        let passes = ROUND.div_ceil(self.bytes());
        let moved = (self.bytes() * passes) as f64;
        // One kind after the other: non-temporal stores put lines out of the caches, which the plain ones of the next round would find in
        // another state than work does that only stores plainly.
        let [plain, streamed] = [false, true].map(|hint| {
            let mut best = f64::INFINITY;
            // The first round is the warm-up.
            self.round(backend.stream(), traffic, hint, passes);
            let (start, mut rounds) = (Instant::now(), 0);
            while rounds < ROUNDS || start.elapsed() < budget / 2 {
                best = best.min(self.round(backend.stream(), traffic, hint, passes));
                rounds += 1;
            }
            moved / best
        });
        Rates { plain, streamed }
    }

    /// Seconds from the first thread's start to the last one's end, of passes over lines that one more pass of the kind has gone over
    /// before: non-temporal stores put lines out of the caches, and the plain ones of a later round would find them in memory.
    fn round(&self, stream: &Stream, traffic: Traffic, hint: bool, passes: usize) -> f64 {
        let waiting = AtomicUsize::new(0);
        let spans = broadcast(|thread| {
            let mut lines = lock(&self.0[thread.index()]);
            pass(stream, traffic, hint, black_box(&mut lines));
            gather(&waiting, self.0.len());
            let start = Instant::now();
            for _ in 0..passes {
                pass(stream, traffic, hint, black_box(&mut lines));
            }
            (start, Instant::now())
        });
        let start = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        let span = end.zip(start).map(|(end, start)| end - start);
        span.unwrap_or_default().as_secs_f64()
    }
}

fn lock(share: &Mutex<Vec<Line>>) -> std::sync::MutexGuard<'_, Vec<Line>> {
    share.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One pass over all lines.
fn pass(stream: &Stream, traffic: Traffic, hint: bool, lines: &mut [Line]) {
    let count = lines.len();
    match traffic {
        Traffic::Read => {
            black_box(stream.read(lines, hint));
        }
        Traffic::Write => stream.write(lines, hint),
        Traffic::Copy => {
            let (from, to) = lines.split_at_mut(count / 2);
            stream.copy(from, to, hint);
        }
        Traffic::Narrow => {
            let (from, to) = lines.split_at_mut(count / 5 * 4);
            stream.narrow(from, to, hint);
        }
        Traffic::Widen => {
            let (from, to) = lines.split_at_mut(count / 5);
            stream.widen(from, to, hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_covers_its_whole_share() {
        let stream = Backend::best().stream();
        let lines = |count: u64| -> Vec<Line> { (0..count).map(|i| Line([i; 8])).collect() };
        for hint in [false, true] {
            let mut copied = lines(20);
            pass(stream, Traffic::Copy, hint, &mut copied);
            assert_eq!(copied[10..], copied[..10]);
            let mut widened = lines(20);
            pass(stream, Traffic::Widen, hint, &mut widened);
            assert_eq!(widened[16..], [Line([3; 8]); 4]);
            let mut narrowed = lines(20);
            pass(stream, Traffic::Narrow, hint, &mut narrowed);
            // 12 ^ 13 ^ 14 ^ 15 = 0, as of every four in a row.
            assert_eq!(narrowed[16..], [Line::default(); 4]);
            let mut written = lines(20);
            pass(stream, Traffic::Write, hint, &mut written);
            assert_eq!(written, [Line([u64::MAX; 8]); 20]);
        }
    }

    #[test]
    fn a_set_smaller_than_a_step_is_measured_at_a_plausible_rate() {
        for measured in curve(Backend::best(), &[0, 1 << 20], Duration::ZERO) {
            assert!(measured.bytes >= measured.threads * UNIT * size_of::<Line>());
            for traffic in Traffic::ALL {
                let Rates { plain, streamed } = measured.of(traffic);
                // Slower than a disk or faster than any cache would be a mistake of arithmetic.
                for rate in [plain, streamed] {
                    assert!((1e7..1e14).contains(&rate), "{measured:?}");
                }
            }
        }
    }
}
