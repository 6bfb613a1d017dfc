//! Threads that do the host's share of the engine's work: copies to and from pinned memory, and packing.
//!
//! They do nothing else. An engine is often behind a lock, which its caller holds meanwhile; the threads of the program's own pool may
//! all be waiting for that lock, and a thread of it that waits for others takes up what else its pool has to do, which may want the lock
//! too. Both would wait for ever.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// More would not copy faster: the memory's bandwidth is then used up.
const MOST: usize = 16;

/// Does `work`, whose parallel iterators run on these threads.
pub(super) fn together<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static TEAM: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let team = TEAM.get_or_init(|| {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let team = ThreadPoolBuilder::new()
            .num_threads(threads.min(MOST))
            .thread_name(|index| format!("tercet-copy-{index}"));
        team.build().ok()
    });
    match team {
        // The system gives no threads: neither has any pool some that could be waiting.
        None => work(),
        Some(team) if rayon::current_thread_index().is_none() => team.install(work),
        // A thread of another pool: one that is of none waits in its place.
        Some(team) => thread::scope(|scope| {
            let waiting = scope.spawn(|| team.install(work));
            waiting.join().unwrap_or_else(|panic| resume_unwind(panic))
        }),
    }
}
