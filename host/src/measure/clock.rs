//! Timing of a run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use super::memory::Growth;

/// Times a closure, which it may call any number of times.
///
/// An operation prepares its memory, passes one closure, and reads the result of the last call.
pub trait Clock: Send {
    /// Calls `work` at least once.
    fn time(&mut self, work: &mut (dyn FnMut() + Send));
}

/// Waits until all `all` threads have arrived; they count themselves in `waiting`. It does not sleep, because waking up
/// takes as long as a round.
pub(super) fn gather(waiting: &AtomicUsize, all: usize) {
    waiting.fetch_add(1, Ordering::AcqRel);
    while waiting.load(Ordering::Acquire) < all {
        yield_now();
    }
}

/// Shorter runs are timed several together, so that the clock's own cost does not matter.
const SHORTEST: Duration = Duration::from_micros(100);

/// After a call that loads the pages, takes as many timed samples as fit a budget, at least 1.
pub(super) struct Stopwatch {
    pub(super) budget: Duration,
    /// Seconds per run.
    pub(super) samples: Vec<f64>,
}

impl Clock for Stopwatch {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
        let begin = Instant::now();
        let mut runs = 1u32;
        loop {
            let start = Instant::now();
            for _ in 0..runs {
                work();
            }
            let spent = start.elapsed();
            if spent < SHORTEST && runs < 1 << 20 {
                runs *= 2;
                continue;
            }
            self.samples.push(spent.as_secs_f64() / f64::from(runs));
            if begin.elapsed() >= self.budget {
                break;
            }
        }
    }
}

/// The run whose result is checked, and its memory. A slow run is timed here, because the cost of page faults is then
/// negligible.
pub(super) struct First {
    budget: Duration,
    /// Seconds of a run that took the budget or longer.
    pub(super) sample: Option<f64>,
    pub(super) growth: Option<Growth>,
}

impl First {
    pub(super) fn new(budget: Duration) -> Self {
        Self {
            budget,
            sample: None,
            growth: None,
        }
    }
}

impl Clock for First {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        let mut spent = Duration::ZERO;
        self.growth = Growth::of(|| {
            let start = Instant::now();
            work();
            spent = start.elapsed();
        });
        self.sample = (spent >= self.budget).then_some(spent.as_secs_f64());
    }
}
