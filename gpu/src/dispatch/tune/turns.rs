//! Timing engines beside each other.

use std::time::{Duration, Instant};

use crate::dispatch::Engine;

/// Rounds in which everything is timed; of an engine's time in each the least counts.
pub(super) const ROUNDS: u32 = 3;
/// How long calls by all threads go on before they are timed, where there is time for it. Threads that slept, and processors with them, are not
/// awake at once: on a virtual machine calls take up to twice as long for some milliseconds.
pub(super) const WARM: Duration = Duration::from_millis(8);
/// Times that a turn has at least.
const TIMES: usize = 2;
/// Calls that are shorter are timed several together, and are none for several threads: waking one up takes about as long.
pub(super) const SHORT: Duration = Duration::from_micros(20);

/// Whether there is an engine left that a round would tell something of: one that is able and took no longer than its share.
pub(super) fn is_worth(share: Duration, able: &[bool], seconds: &[f64]) -> bool {
    let mut all = able.iter().zip(seconds);
    all.any(|(&able, &seconds)| able && wants(share, seconds))
}

/// A long call says at once what there is to say.
fn wants(share: Duration, seconds: f64) -> bool {
    seconds.is_infinite() || seconds < share.as_secs_f64()
}

/// A round: each able engine has its turn, the median of its calls within the share, all threads warmed up for a while; `seconds` keeps the least
/// of all rounds. `call` is told whose turn it is.
pub(super) fn take_turns<E>(
    (share, warm): (Duration, Duration),
    engines: &[Engine],
    able: &[bool],
    seconds: &mut [f64],
    mut call: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    for (index, &engine) in engines.iter().enumerate() {
        if !able[index] || !wants(share, seconds[index]) {
            continue;
        }
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let shared = engine == Engine::Threads && least > SHORT.as_secs_f64();
        let warm = if shared { warm } else { Duration::ZERO };
        let taken = timed(share, warm, || call(index))?;
        seconds[index] = seconds[index].min(taken);
    }
    Ok(())
}

/// The median time of as many calls as fit the share, after untimed ones.
pub(super) fn timed<E>(
    share: Duration,
    warm: Duration,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    // Faults pages in, and fills caches as calls one after another find them.
    let begin = Instant::now();
    call()?;
    let first = begin.elapsed();
    // Beside so long a call that does not show.
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
    fn a_time_is_the_least_of_all_rounds_and_errors_pass() {
        let engines = [Engine::Simd, Engine::Threads];
        let mut seconds = [f64::INFINITY; 2];
        let share = Duration::from_millis(5);
        for milliseconds in [3, 1, 2] {
            let turn = |index| {
                std::thread::sleep(Duration::from_millis(milliseconds + index as u64));
                Ok::<_, ()>(())
            };
            take_turns((share, share), &engines, &[true; 2], &mut seconds, turn).unwrap();
        }
        assert!((1e-3..3e-3).contains(&seconds[0]), "{seconds:?}");
        assert!((2e-3..4e-3).contains(&seconds[1]), "{seconds:?}");
        let failed = take_turns((share, share), &engines, &[true; 2], &mut seconds, |_| {
            Err("no")
        });
        assert_eq!(failed, Err("no"));
    }

    #[test]
    fn who_is_not_able_or_has_taken_long_has_no_turn() {
        let share = Duration::from_millis(1);
        let engines = [Engine::Scalar, Engine::Simd, Engine::Threads];
        let mut seconds = [f64::INFINITY, 2e-3, 1e-6];
        let mut asked = Vec::new();
        let able = [false, true, true];
        assert!(is_worth(share, &able, &seconds));
        let turn = |index| {
            asked.push(index);
            Ok::<_, ()>(())
        };
        take_turns((share, share), &engines, &able, &mut seconds, turn).unwrap();
        assert!(asked.iter().all(|&index| index == 2));
        assert!(!is_worth(share, &[false, true, false], &seconds));
    }
}
