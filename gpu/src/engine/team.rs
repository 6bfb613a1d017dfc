//! Threads for the host's part of the engine's work: copies to and from pinned memory, and packing.
//!
//! They do nothing else. An engine is often behind a lock, which its caller holds meanwhile. The threads of the
//! program's own pool may all be waiting for that lock, and a thread of the pool that waits for others runs other jobs
//! of the pool, which may need the lock too. Both would wait forever.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// More threads would not copy faster: the memory bandwidth is then used up.
const MOST: usize = 16;

/// Runs `work`, whose parallel iterators run on these threads.
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
        // The system gives no threads: then no other pool has threads that could be waiting.
        None => work(),
        Some(team) if rayon::current_thread_index().is_none() => team.install(work),
        // Use a new thread: unlike a thread of another pool, it waits without running other jobs.
        Some(team) => thread::scope(|scope| {
            let waiting = scope.spawn(|| team.install(work));
            waiting.join().unwrap_or_else(|panic| resume_unwind(panic))
        }),
    }
}
