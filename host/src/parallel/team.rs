//! Threads that stay awake while one works through many small steps.
//!
//! A thread of the pool that finds nothing to do falls asleep after some microseconds, and waking it takes longer than most products of a small language
//! model's token. So for a whole step of a model the pool's other threads are kept looking for work, and a product is shared out from a size on that
//! would not be worth waking anyone for.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::Yield;

/// Values in a task where threads are awake.
const TILE: usize = 1 << 12;
/// Looks for work in vain after which a thread lets others of the machine go first.
const PATIENCE: u32 = 256;

thread_local! {
    /// Whether this thread leads a team.
    static LEADS: Cell<bool> = const { Cell::new(false) };
}

/// Whether there is a team: one thread that leads two would have each wait for the other's steps.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Values in a task, where `usual` is what it is otherwise.
pub(super) fn tile(usual: usize) -> usize {
    match LEADS.get() {
        true => usual.min(TILE),
        false => usual,
    }
}

/// Does `work` while the pool's other threads, up to `threads` in all, stay awake for what it shares out. Where there is another team already, or no
/// other thread, they sleep when they like.
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

/// Ends a team, also one whose work panicked.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        LEADS.set(false);
        self.0.store(true, Ordering::Release);
        BUSY.store(false, Ordering::Release);
    }
}

/// Looks for work until there will be none.
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
