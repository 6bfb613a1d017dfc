//! What times a run.

use std::time::{Duration, Instant};

/// Times what it is given, as often as it likes.
///
/// An operation prepares its memory, gives one closure, and looks at what the last call left.
pub trait Clock: Send {
    /// Calls `work` at least once.
    fn time(&mut self, work: &mut (dyn FnMut() + Send));
}

/// Once, untimed.
#[cfg(test)]
pub(super) struct Once;

#[cfg(test)]
impl Clock for Once {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}

/// Shorter runs are timed several together, so that the clock's own cost does not show.
const SHORTEST: Duration = Duration::from_micros(100);

/// After a call that faults the pages in, as many timed samples as fit a budget, at least 1.
pub(super) struct Stopwatch {
    pub(super) budget: Duration,
    /// Seconds a run.
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
