//! Times several engines in turn.

use std::time::{Duration, Instant};

use crate::dispatch::Engine;

/// Rounds in which everything is timed, some hundred milliseconds apart.
///
/// All threads together take one of two times, in phases of tens of milliseconds: the other processors are either awake
/// or must be woken up. This many rounds see both.
pub(super) const ROUNDS: u32 = 12;
/// Number of rounds for scalar code, and for calls longer than their share.
const FEW_ROUNDS: usize = 3;
/// Duration of untimed calls by all threads before they are timed, if there is time for it: threads that slept need
/// time to wake up.
pub(super) const WARM: Duration = Duration::from_millis(1);
/// Minimum number of times per turn.
const TIMES: usize = 2;
/// Shorter calls are timed several together, and never run on several threads: waking up a thread takes about as long.
pub(super) const SHORT: Duration = Duration::from_micros(20);

/// Times of an engine in each round, in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds(Vec<f64>);

impl Rounds {
    /// Returns the mean without the fastest and the slowest quarter of the rounds: disturbed rounds do not count, and
    /// if there are two typical times, both do. Infinite if there was no round.
    pub(super) fn typical(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let off = sorted.len() / 4;
        let kept = &sorted[off..sorted.len() - off];
        match kept.len() {
            0 => f64::INFINITY,
            count => kept.iter().sum::<f64>() / count as f64,
        }
    }

    /// True if another round would add information. Long calls need few rounds, and so does scalar code, which wakes up
    /// no thread. Most rounds therefore run without scalar code, so that kernels find the wide units of the processor
    /// awake.
    fn wants(&self, engine: Engine, share: Duration) -> bool {
        let short = |&last: &f64| last < share.as_secs_f64();
        self.0.len() < FEW_ROUNDS || (engine != Engine::Scalar && self.0.last().is_none_or(short))
    }
}

/// True if another round would add information about any engine.
pub(super) fn is_worth(
    share: Duration,
    engines: &[Engine],
    able: &[bool],
    rounds: &[Rounds],
) -> bool {
    let mut all = engines.iter().zip(able).zip(rounds);
    all.any(|((&engine, &able), rounds)| able && rounds.wants(engine, share))
}

/// Runs a round: each able engine has its turn, which is the median of its calls within the share, with all threads
/// warmed up for a while. Each round begins with another engine. `call` receives the index of the engine.
pub(super) fn take_turns<E>(
    (share, warm): (Duration, Duration),
    engines: &[Engine],
    able: &[bool],
    rounds: &mut [Rounds],
    mut call: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let done = rounds.iter().map(|rounds| rounds.0.len()).max();
    let mut all: Vec<_> = engines.iter().copied().enumerate().collect();
    all.rotate_left(done.unwrap_or(0) % engines.len().max(1));
    for (index, engine) in all {
        if !able[index] || !rounds[index].wants(engine, share) {
            continue;
        }
        let least = rounds.iter().map(Rounds::typical);
        let least = least.fold(f64::INFINITY, f64::min);
        let shared = engine == Engine::Threads && least > SHORT.as_secs_f64();
        let warm = if shared { warm } else { Duration::ZERO };
        let taken = timed(share, warm, || call(index))?;
        rounds[index].0.push(taken);
    }
    Ok(())
}

/// Returns the median time of as many calls as fit into the share, after untimed ones.
pub(super) fn timed<E>(
    share: Duration,
    warm: Duration,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    // Loads pages, and fills the caches as they are in repeated calls.
    let begin = Instant::now();
    call()?;
    let first = begin.elapsed();
    // A long call hides these effects.
    if first > share * 8 {
        return Ok(first.as_secs_f64());
    }
    while begin.elapsed() < warm {
        call()?;
    }
    let begin = Instant::now();
    let (mut times, mut calls) = (Vec::new(), 1u32);
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let spent = start.elapsed();
        if spent < SHORT && calls < 1 << 10 {
            calls *= 2;
            continue;
        }
        times.push(spent.as_secs_f64() / f64::from(calls));
        if (begin.elapsed() >= share && times.len() >= TIMES) || spent >= 2 * share {
            times.sort_by(f64::total_cmp);
            return Ok(times[(times.len() - 1) / 2]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_mean_of_the_middle_rounds() {
        let of = |times: &[f64]| Rounds(times.to_vec()).typical();
        assert_eq!(of(&[]), f64::INFINITY);
        assert_eq!(of(&[2.0]), 2.0);
        assert_eq!(of(&[1.0, 90.0, 3.0, 0.1]), 2.0);
        assert_eq!(of(&[1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0]), 1.5);
    }

    #[test]
    fn each_engine_has_its_turn_and_errors_pass() {
        let engines = [Engine::Simd, Engine::Threads];
        let mut rounds = vec![Rounds::default(); 2];
        let share = Duration::from_millis(5);
        for milliseconds in [3, 1, 2] {
            let turn = |index| {
                std::thread::sleep(Duration::from_millis(milliseconds + index as u64));
                Ok::<_, ()>(())
            };
            take_turns((share, share), &engines, &[true; 2], &mut rounds, turn).unwrap();
        }
        assert!(rounds.iter().all(|it| it.0.len() == 3));
        assert!(rounds[0].typical() >= 2e-3 && rounds[1].typical() >= 3e-3);
        let failed = take_turns((share, share), &engines, &[true; 2], &mut rounds, |_| {
            Err("no")
        });
        assert_eq!(failed, Err("no"));
    }

    #[test]
    fn who_is_not_able_or_has_taken_long_has_no_turn() {
        let share = Duration::from_millis(1);
        let engines = [Engine::Scalar, Engine::Simd, Engine::Threads];
        let mut rounds = [vec![], vec![2e-3; FEW_ROUNDS], vec![1e-6; FEW_ROUNDS]].map(Rounds);
        let mut asked = Vec::new();
        let able = [false, true, true];
        assert!(is_worth(share, &engines, &able, &rounds));
        let turn = |index| {
            asked.push(index);
            Ok::<_, ()>(())
        };
        take_turns((share, share), &engines, &able, &mut rounds, turn).unwrap();
        assert!(!asked.is_empty() && asked.iter().all(|&index| index == 2));
        assert!(!is_worth(share, &engines, &[false, true, false], &rounds));
    }
}
