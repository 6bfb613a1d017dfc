//! Threads that stay awake while one works through many small steps.
//!
//! An idle thread of the pool falls asleep after some microseconds, and waking it takes longer than most products for a
//! token of a small language model. So during a whole step of a model the pool's other threads keep looking for work,
//! and products are shared from a size on for which waking a thread would not pay off.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::Yield;

/// Values per task if threads are awake.
const TILE: usize = 1 << 12;
/// Number of unsuccessful looks for work after which a thread lets other threads of the machine run first.
const PATIENCE: u32 = 256;

thread_local! {
    /// True if this thread leads a team.
    static LEADS: Cell<bool> = const { Cell::new(false) };
}

/// True if there is a team: a thread in two teams would delay the steps of both.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Returns the values per task; `usual` is the number without a team.
pub(super) fn tile(usual: usize) -> usize {
    match LEADS.get() {
        true => usual.min(TILE),
        false => usual,
    }
}

/// Runs `work` while the pool's other threads, up to `threads` in total, stay awake for the work that it shares. If
/// there is already another team, or no other thread, they may sleep as usual.
pub(crate) fn with<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    if threads < 2 || BUSY.swap(true, Ordering::Acquire) {
        return work();
    }
    let done = AtomicBool::new(false);
    rayon::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| stay(&done));
        }
        let _end = End(&done);
        LEADS.set(true);
        work()
    })
}

/// Ends a team, even if its work panicked.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        LEADS.set(false);
        self.0.store(true, Ordering::Release);
        BUSY.store(false, Ordering::Release);
    }
}

/// Looks for work until the team ends.
fn stay(done: &AtomicBool) {
    let mut vain = 0;
    while !done.load(Ordering::Acquire) {
        if let Some(Yield::Executed) = rayon::yield_now() {
            vain = 0;
            continue;
        }
        vain += 1;
        match vain % PATIENCE {
            0 => std::thread::yield_now(),
            _ => spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_in_a_team_is_none_and_one_whose_work_panics_ends() {
        for _ in 0..2 {
            let caught = std::panic::catch_unwind(|| with(2, || panic!("on purpose")));
            assert!(caught.is_err());
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
        let found = pool.expect("a pool").install(|| {
            with(3, || {
                let outer = tile(1 << 16);
                let inner = with(3, || rayon::join(|| tile(1 << 16), || 2).1);
                (outer, inner, BUSY.load(Ordering::Relaxed))
            })
        });
        assert_eq!(found, (TILE, 2, true));
        assert_eq!(tile(1 << 16), 1 << 16);
    }
}
