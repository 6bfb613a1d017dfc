//! Models of the shared list under loom, which runs them in every order that the memory model allows.
//! `.ci/steps/loom.sh` runs them. The main thread only starts and joins the others: loom 0.7 tries no order in which
//! its own loads come late.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Counter, Ordering::Relaxed};
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{AtomicList, AtomicU16, AtomicU32, AtomicWord, FreeList, Word};

/// A list and its blocks. Loom panics if two threads access a block without an order between them.
struct Model<const N: usize> {
    list: AtomicList<N>,
    blocks: [UnsafeCell<Option<usize>>; N],
}

// SAFETY: loom's cells check each access.
unsafe impl<const N: usize> Sync for Model<N> {}

impl<const N: usize> Model<N> {
    /// Creates a list with all blocks free, after `tag` allocations.
    fn new(tag: Word) -> Arc<Self> {
        Arc::new(Self {
            list: AtomicList {
                head: AtomicWord::new(tag.wrapping_mul(AtomicList::<N>::STEP)),
                failures: AtomicU32::new(0),
                links: core::array::from_fn(|_| AtomicU16::new(0)),
            },
            blocks: core::array::from_fn(|_| UnsafeCell::new(None)),
        })
    }

    fn take_by(&self, step: Word, owner: usize) -> Option<usize> {
        let index = self.list.pop(step)?;
        self.blocks[index].with_mut(|block| {
            // SAFETY: what loom checks, as the list's users would rely on it.
            let before = unsafe { (*block).replace(owner) };
            assert_eq!(before, None, "block {index} was in use");
        });
        Some(index)
    }

    fn take(&self, owner: usize) -> Option<usize> {
        self.take_by(AtomicList::<N>::STEP, owner)
    }

    fn give(&self, index: usize, owner: usize) {
        self.blocks[index].with_mut(|block| {
            // SAFETY: as above.
            let before = unsafe { (*block).take() };
            assert_eq!(before, Some(owner), "block {index} had another owner");
        });
        // SAFETY: the block was this owner's.
        unsafe { self.list.give(index) };
    }

    /// Checks that exactly `free` blocks can be taken while no other thread works.
    fn has(&self, free: usize) {
        let taken: Vec<usize> = core::iter::from_fn(|| self.take(99)).collect();
        assert_eq!(taken.len(), free);
        let stats = self.list.stats();
        assert_eq!((stats.in_use, stats.high_water), (N, N));
        taken.into_iter().for_each(|index| self.give(index, 99));
        assert_eq!(self.list.stats().in_use, N - free);
    }
}

fn spawn<const N: usize, R: 'static>(
    model: &Arc<Model<N>>,
    work: impl FnOnce(&Model<N>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

fn join<R, const T: usize>(threads: [thread::JoinHandle<R>; T]) -> [R; T] {
    threads.map(|thread| thread.join().unwrap())
}

/// Runs all orders with up to `interruptions` preemptions of threads. Without this bound, these models do not end in
/// ten minutes.
fn explore(interruptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(model);
}

/// Two threads take and return twice, from a list that is never empty.
fn take_and_give_twice(tag: Word) {
    explore(3, move || {
        let model = Model::<2>::new(tag);
        let threads = [1, 2].map(|owner| {
            spawn(&model, move |model| {
                for _ in 0..2 {
                    let index = model.take(owner).expect("one for each thread");
                    model.give(index, owner);
                }
            })
        });
        join(threads);
        model.has(2);
    });
}

#[test]
fn blocks_are_exclusive_and_all_come_back() {
    take_and_give_twice(0);
}

#[test]
fn the_tag_may_overflow() {
    take_and_give_twice(Word::MAX >> AtomicList::<2>::INDEX_BITS);
}

#[test]
fn three_threads_share_two_blocks() {
    explore(2, || {
        let model = Model::<2>::new(0);
        let threads = [1, 2, 3].map(|owner| {
            spawn(&model, move |model| {
                if let Some(index) = model.take(owner) {
                    model.give(index, owner);
                }
            })
        });
        join(threads);
        model.has(2);
    });
}

#[test]
fn refusals_are_counted_and_take_nothing() {
    loom::model(|| {
        let model = Model::<1>::new(0);
        let threads = [1, 2].map(|owner| {
            spawn(&model, move |model| {
                model.list.take().map(|index| (index, owner))
            })
        });
        let taken = join(threads);
        assert_eq!(taken.iter().flatten().count(), 1);
        let stats = model.list.stats();
        assert_eq!((stats.in_use, stats.failures), (1, 1));
    });
}

/// The next holder sees the writes of the previous one, whichever thread returned the block and whatever was returned
/// after it.
#[test]
fn a_block_carries_its_bytes_to_the_next_holder() {
    let (taken, refused) = (Arc::new(Counter::new(0)), Arc::new(Counter::new(0)));
    let counters = (Arc::clone(&taken), Arc::clone(&refused));
    explore(3, move || {
        let model = Model::<2>::new(0);
        let blocks = [model.take(0).unwrap(), model.take(0).unwrap()];
        let givers = blocks.map(|index| spawn(&model, move |model| model.give(index, 0)));
        let (taken, refused) = counters.clone();
        // `take` writes to the cell that another thread wrote to: a race unless the list orders them.
        let taker = spawn(&model, move |model| match model.take(7) {
            Some(index) => {
                taken.fetch_add(1, Relaxed);
                model.give(index, 7);
            }
            None => {
                refused.fetch_add(1, Relaxed);
            }
        });
        join(givers);
        taker.join().unwrap();
        model.has(2);
    });
    assert!(taken.load(Relaxed) > 0 && refused.load(Relaxed) > 0);
}

/// One thread reads head 0 and link 1; the other takes 0 and 1 and returns 0. With head 0 again, a swap to 1 would
/// put a block that is in use on top.
fn a_then_b_then_a(step: Word) {
    loom::model(move || {
        let model = Model::<2>::new(0);
        let slow = spawn(&model, move |model| {
            model.take_by(step, 1);
            model.take_by(step, 1);
        });
        let quick = spawn(&model, move |model| {
            let first = model.take_by(step, 2);
            model.take_by(step, 2);
            if let Some(index) = first {
                model.give(index, 2);
            }
        });
        join([slow, quick]);
    });
}

#[test]
fn an_allocation_held_up_takes_no_stale_link() {
    a_then_b_then_a(AtomicList::<2>::STEP);
}

/// The model above does find the error that the tag prevents.
#[test]
#[should_panic(expected = "Causality violation")]
fn without_the_tag_a_block_is_taken_twice() {
    a_then_b_then_a(0);
}
