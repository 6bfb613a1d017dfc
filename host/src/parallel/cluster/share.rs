//! Work shared out among the threads of the rayon pool.

use std::sync::{Mutex, PoisonError};

use rayon::iter::IndexedParallelIterator;
use rayon::iter::plumbing::{Producer, ProducerCallback};
use tracing::trace_span;

/// What the best kernels need to compare points with centroids, in multiplications: of those there are, and as long as some of
/// 8 centroids and 128 more a point take to read and turn it, to find the nearest and to write what was found.
pub(super) fn work(points: usize, dims: usize, centroids: usize) -> usize {
    let point = dims.saturating_mul(centroids.saturating_add(8));
    points.saturating_mul(point.saturating_add(128))
}

/// How many jobs a [`work`] is worth, of at most `threads`.
pub(super) fn jobs(work: usize, threads: usize) -> usize {
    (work / GRAIN).clamp(1, threads)
}

/// The work of a job that outweighs waking up its thread: of the fastest kernels about 20 µs, in which a sleeping thread
/// is there.
const GRAIN: usize = 1 << 23;

/// Calls `run` with every item, on the calling thread and, where there is more than one job, on as many others of the
/// pool as there are jobs more.
///
/// Each job begins with a run of items of its own, the same whenever there are as many of both, so that a thread finds what
/// it wrote in its own cache the next time; when it is done it takes the last of others.
pub(super) fn share<J: Send, I: IndexedParallelIterator>(
    jobs: &mut [J],
    items: I,
    run: impl Fn(&mut J, I::Item) + Sync,
) {
    let len = items.len();
    items.with_producer(Deal { jobs, len, run });
}

/// Jobs to deal items out to.
struct Deal<'a, J, F> {
    jobs: &'a mut [J],
    len: usize,
    run: F,
}

impl<J: Send, T, F: Fn(&mut J, T) + Sync> ProducerCallback<T> for Deal<'_, J, F> {
    type Output = ();

    fn callback<P: Producer<Item = T>>(self, items: P) {
        let Self { jobs, len, run } = self;
        let count = jobs.len();
        let mut queues = Vec::with_capacity(count);
        let (mut rest, mut start) = (items, 0);
        for job in 1..count {
            let end = len * job / count;
            let (queue, others) = rest.split_at(end - start);
            queues.push(Queue::new(queue, end - start));
            (rest, start) = (others, end);
        }
        queues.push(Queue::new(rest, len - start));
        let drain = |index: usize, job: &mut J| {
            let _span = trace_span!("job", index).entered();
            while let Some(item) = queues[index].first() {
                run(job, item);
            }
            for other in (0..count).filter(|&other| other != index) {
                while let Some(item) = queues[other].last() {
                    run(job, item);
                }
            }
        };
        match jobs {
            [] => {}
            [job] => drain(0, job),
            [first, others @ ..] => rayon::in_place_scope(|scope| {
                for (index, job) in (1..).zip(others) {
                    let drain = &drain;
                    scope.spawn(move |_| drain(index, job));
                }
                drain(0, first);
            }),
        }
    }
}

/// Items that are left, and how many.
struct Queue<P>(Mutex<(Option<P>, usize)>);

impl<P: Producer> Queue<P> {
    fn new(items: P, len: usize) -> Self {
        Self(Mutex::new((Some(items), len)))
    }

    fn first(&self) -> Option<P::Item> {
        self.take(|items, _| items.split_at(1))
    }

    fn last(&self) -> Option<P::Item> {
        self.take(|items, len| {
            let (rest, last) = items.split_at(len - 1);
            (last, rest)
        })
    }

    /// Takes one off: `split` gives it and the rest.
    fn take(&self, split: impl FnOnce(P, usize) -> (P, P)) -> Option<P::Item> {
        // A panic in `split` would be the producer's own; no item runs while the lock is held.
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (items, len) = &mut *left;
        if *len == 0 {
            return None;
        }
        let (one, rest) = split(items.take()?, *len);
        *items = Some(rest);
        *len -= 1;
        one.into_iter().next()
    }
}
