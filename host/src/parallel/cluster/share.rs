//! Work shared out among the threads of the rayon pool.

use std::sync::{Mutex, PoisonError};

/// How many jobs `work` multiplications are worth: threads wake up in the time of about a million.
pub(super) fn jobs(work: usize) -> usize {
    (work / GRAIN).clamp(1, rayon::current_num_threads())
}

/// Multiplications that outweigh a job.
const GRAIN: usize = 1 << 22;

/// Calls `run` with every item, on the calling thread and, where there is more than one job, on as many others of the
/// pool as there are jobs more; each takes the next item when it is done with one.
pub(super) fn share<J: Send, I: Iterator<Item: Send> + Send>(
    jobs: &mut [J],
    items: I,
    run: impl Fn(&mut J, I::Item) + Sync,
) {
    let items = Mutex::new(items.fuse());
    let drain = |job: &mut J| {
        loop {
            // A panic in `next` would be the iterator's own; in `run` the lock is not held.
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(item) => run(job, item),
                None => return,
            }
        }
    };
    match jobs {
        [] => {}
        [job] => drain(job),
        [first, others @ ..] => rayon::in_place_scope(|scope| {
            for job in others {
                scope.spawn(|_| drain(job));
            }
            drain(first);
        }),
    }
}
