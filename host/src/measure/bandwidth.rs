//! Memory bandwidth by working set.
//!
//! Each thread of the rayon pool fills its own share of the buffers with random words, which loads every page before
//! any timing, and then passes over it. Threads start together and time themselves, so that neither page faults nor the
//! start of tasks are timed. Loads and stores are as wide as the backend has them.

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
    /// Only reads: the ceiling of a product.
    Read,
    /// Only writes.
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

    /// Returns its name, in words.
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

/// Bytes per second, counting both bytes read and bytes written. A line that an ordinary store first reads from memory
/// is counted once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// With plain loads and stores.
    pub plain: f64,
    /// With loads with software prefetch, and non-temporal stores, which bypass the caches. The same as `plain` on
    /// machines for which this crate has no such loop.
    pub streamed: f64,
}

impl Rates {
    /// Returns the larger one: the ceiling.
    pub const fn best(&self) -> f64 {
        self.plain.max(self.streamed)
    }

    /// Returns the larger of both for each rate.
    pub(super) const fn or_better(self, other: Self) -> Self {
        Self {
            plain: self.plain.max(other.plain),
            streamed: self.streamed.max(other.streamed),
        }
    }
}

/// The bandwidth of a pool of threads for one working set.
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
    /// Returns the rates of a mix.
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

/// A round passes over the set until this many bytes are moved. This is long enough to hide the clock's tick and the
/// start, and short enough that some rounds are free of other load. The measured work also takes its best run, or 0.1
/// ms of runs.
const ROUND: usize = 4 << 20;
/// Minimum number of rounds.
const ROUNDS: u32 = 3;
/// Lines per unit, divisible by two and by five.
const UNIT: usize = 10;

/// Measures over a working set of `bytes`, rounded up by less than 2 KiB per thread, with the current rayon pool
/// (`ThreadPool::install` chooses another). Returns for each mix the best of the rounds that fit `budget`, at least 3,
/// after a warm-up.
///
/// It is the best and not the median, because a ceiling is the maximum of the machine, and other load only lowers it.
/// Each round moves the set, or 4 MiB if it is smaller. Memory: `bytes`.
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

/// Does [`bandwidth`] for only one mix.
pub fn rates(backend: Backend, traffic: Traffic, bytes: usize, budget: Duration) -> Rates {
    Shares::new(bytes).rates(backend, traffic, budget)
}

/// Does [`bandwidth`] at each of several working sets: steps in it show the caches.
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
        // Odd, so that the two sides of a pass are never a multiple of 4 KiB apart: then processors would treat a load
        // as waiting for a store.
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
        // One kind after the other: non-temporal stores remove lines from the caches. The plain ones of the next round
        // would find them in another state than work that only stores plainly.
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

    /// Returns the seconds from the first thread's start to the last one's end, for passes over lines that one more
    /// pass of the kind has visited before: non-temporal stores remove lines from the caches, and the plain ones of a
    /// later round would find them in memory.
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

/// Does one pass over all lines.
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
            // 12 ^ 13 ^ 14 ^ 15 = 0, as for every four in a row.
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
                // A result slower than a disk or faster than any cache would be an arithmetic error.
                for rate in [plain, streamed] {
                    assert!((1e7..1e14).contains(&rate), "{measured:?}");
                }
            }
        }
    }
}
