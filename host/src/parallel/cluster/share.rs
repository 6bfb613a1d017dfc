//! Shares work among the threads of the rayon pool.

use std::sync::{Mutex, PoisonError};

use tracing::trace_span;

use super::super::each::{Split, Tasks};

/// Returns the work of the best kernels to compare points with centroids, in multiplications: those of the existing
/// centroids, plus per point the equivalent of 8 centroids and of 128, for reading and transposing it, finding the
/// nearest and writing the result.
pub(super) fn work(points: usize, dims: usize, centroids: usize) -> usize {
    let point = dims.saturating_mul(centroids.saturating_add(8));
    points.saturating_mul(point.saturating_add(128))
}

/// Returns how many jobs a [`work`] is worth, at most `threads`.
pub(super) fn jobs(work: usize, threads: usize) -> usize {
    (work / GRAIN).clamp(1, threads)
}

/// The work of a job that outweighs waking its thread: about 20 µs of the fastest kernels, in which a sleeping thread
/// wakes up.
const GRAIN: usize = 1 << 23;

/// Calls `run` with every item and its number, on the calling thread and, if there is more than one job, on one more
/// thread of the pool per additional job.
///
/// Each job begins with its own run of items, the same whenever the numbers of items and jobs are the same, so that a
/// thread finds its earlier results in its own cache the next time. When it is done, it takes the last items of others.
pub(super) fn share<J: Send, P: Split>(
    jobs: &mut [J],
    tasks: Tasks<P>,
    run: &(dyn Fn(&mut J, usize, P::Item) + Sync),
) {
    let (count, mut rest) = (jobs.len(), tasks.into_items());
    let (len, mut start) = (rest.count(), 0);
    let mut queues = Vec::with_capacity(count);
    for job in 1..count {
        let end = len * job / count;
        let (queue, others) = rest.split_at(end - start);
        queues.push(Queue::new(queue, start));
        (rest, start) = (others, end);
    }
    queues.push(Queue::new(rest, start));
    let drain = |index: usize, job: &mut J| {
        let _span = trace_span!("job", index).entered();
        while let Some((number, item)) = queues[index].first() {
            run(job, number, item);
        }
        for other in (0..count).filter(|&other| other != index) {
            while let Some((number, item)) = queues[other].last() {
                run(job, number, item);
            }
        }
    };
    match jobs {
        [] => {}
        [job] => drain(0, job),
        jobs => {
            // Each thread is the only one to lock its job.
            let jobs: Vec<_> = jobs.iter_mut().map(Mutex::new).collect();
            crew(count, &|index| {
                let mut job = jobs[index].lock().unwrap_or_else(PoisonError::into_inner);
                drain(index, &mut job);
            });
        }
    }
}

/// Calls `work` with every number below `count`, with 0 on the calling thread.
#[inline(never)]
fn crew(count: usize, work: &(dyn Fn(usize) + Sync)) {
    rayon::in_place_scope(|scope| {
        for index in 1..count {
            scope.spawn(move |_| work(index));
        }
        work(0);
    });
}

/// The remaining items, and the number of the first.
struct Queue<P>(Mutex<(Option<P>, usize)>);

impl<P: Split> Queue<P> {
    const fn new(items: P, first: usize) -> Self {
        Self(Mutex::new((Some(items), first)))
    }

    fn first(&self) -> Option<(usize, P::Item)> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (items, first) = &mut *left;
        let item = items.as_mut()?.next()?;
        *first += 1;
        Some((*first - 1, item))
    }

    fn last(&self) -> Option<(usize, P::Item)> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (items, first) = &mut *left;
        let before = items.as_ref()?.count().checked_sub(1)?;
        let (rest, mut last) = items.take()?.split_at(before);
        *items = Some(rest);
        Some((*first + before, last.next()?))
    }
}
