//! Runs tasks in parallel on rayon's threads, with results in the order of their items.
//!
//! With rayon's own iterators the compiler generates all of rayon's machinery again for every closure, which took half
//! of its time for this crate. Here rayon calls one function, [`fork`]: a thread gets its run of items, and returns its
//! result, through `dyn`, whose cost is negligible beside a tile or a row. Items are shared as by rayon's iterators:
//! halved until there are about as many runs as threads, and again if another thread took a half.

mod split;

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use split::Split;
use split::{Backwards, Chunks, ChunksMut, Zip};

/// Items for threads to share.
pub(crate) struct Tasks<P> {
    items: P,
    /// Minimum number of items per thread.
    least: usize,
}

/// Returns the slices of `size` elements; the last one has the rest.
pub(crate) fn chunks<T: Sync>(all: &[T], size: usize) -> Tasks<Chunks<'_, T>> {
    Tasks::of(Chunks { all, size })
}

/// Returns the slices of `size` elements to write to; the last one has the rest.
pub(crate) fn chunks_mut<T: Send>(all: &mut [T], size: usize) -> Tasks<ChunksMut<'_, T>> {
    Tasks::of(ChunksMut { all, size })
}

/// Returns the elements of a slice.
pub(crate) fn items<T: Sync>(all: &[T]) -> Tasks<&[T]> {
    Tasks::of(all)
}

/// Returns the elements of a slice to write to.
pub(crate) fn items_mut<T: Send>(all: &mut [T]) -> Tasks<&mut [T]> {
    Tasks::of(all)
}

/// Returns the numbers of a range.
pub(crate) fn numbers(range: Range<usize>) -> Tasks<Range<usize>> {
    Tasks::of(range)
}

/// Returns the results of two calls, the second one on another thread if one is free.
pub(crate) fn both<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    let (mut a, mut b) = (Some(a), Some(b));
    let (mut of_a, mut of_b) = (None, None);
    fork(&mut |_| of_a = a.take().map(|a| a()), &mut |_| {
        of_b = b.take().map(|b| b())
    });
    (of_a.expect(RUN), of_b.expect(RUN))
}

const RUN: &str = "a fork runs both of its sides";

/// Runs both, each once, the second one on another thread if one is free. Passes true to each that was moved to another
/// thread.
#[inline(never)]
fn fork(left: &mut (dyn FnMut(bool) + Send), right: &mut (dyn FnMut(bool) + Send)) {
    rayon::join_context(
        |context| left(context.migrated()),
        |context| right(context.migrated()),
    );
}

impl<P: Split> Tasks<P> {
    const fn of(items: P) -> Self {
        Self { items, least: 1 }
    }

    /// Pairs each item with that of `other` at its place, up to the end of the shorter.
    pub(crate) fn zip<B: Split>(self, other: Tasks<B>) -> Tasks<Zip<P, B>> {
        Tasks {
            items: Zip(self.items, other.items),
            least: self.least.max(other.least),
        }
    }

    /// Reverses the order.
    pub(crate) fn backwards(self) -> Tasks<Backwards<P>> {
        Tasks {
            items: Backwards(Some(self.items)),
            least: self.least,
        }
    }

    /// Sets the minimum number of consecutive items per thread, if there are as many.
    pub(crate) fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Returns only the items.
    pub(super) fn into_items(self) -> P {
        self.items
    }

    /// Calls `run` with the number of every item and the item.
    pub(crate) fn each(self, run: impl Fn(usize, P::Item) + Sync) {
        self.run(&|mut number, mut items| {
            while let Some(item) = items.next() {
                run(number, item);
                number += 1;
            }
        });
    }

    /// Returns the results of `run` for every item, in order.
    pub(crate) fn gather<R: Send + 'static>(
        self,
        run: impl Fn(usize, P::Item) -> R + Sync,
    ) -> Vec<R> {
        self.gather_with(|| (), |(), number, item| run(number, item))
    }

    /// Does [`Tasks::gather`] with a value of `begin` for every run of items.
    pub(crate) fn gather_with<S, R: Send + 'static>(
        self,
        begin: impl Fn() -> S + Sync,
        run: impl Fn(&mut S, usize, P::Item) -> R + Sync,
    ) -> Vec<R> {
        let part: &(dyn Fn(usize, P) -> Vec<R> + Sync) = &|mut number, mut items| {
            let mut state = begin();
            let mut all = Vec::with_capacity(items.count());
            while let Some(item) = items.next() {
                all.push(run(&mut state, number, item));
                number += 1;
            }
            all
        };
        if self.items.count() / 2 < self.least {
            // One run, which needs no place among others.
            return part(0, self.items);
        }
        joined(self.in_order(part))
    }

    /// Returns the results of `run` for every item, merged in order; `None` without items.
    pub(crate) fn reduce<R: Send + 'static>(
        self,
        run: impl Fn(usize, P::Item) -> R + Sync,
        merge: impl Fn(R, R) -> R + Sync,
    ) -> Option<R> {
        self.reduce_with(|| (), |(), number, item| run(number, item), merge)
    }

    /// Does [`Tasks::reduce`] with a value of `begin` for every run of items.
    pub(crate) fn reduce_with<S, R: Send + 'static>(
        self,
        begin: impl Fn() -> S + Sync,
        run: impl Fn(&mut S, usize, P::Item) -> R + Sync,
        merge: impl Fn(R, R) -> R + Sync,
    ) -> Option<R> {
        let parts = self.in_order(&|first, mut items| {
            let mut state = begin();
            let mut all = run(&mut state, first, items.next()?);
            let mut number = first + 1;
            while let Some(item) = items.next() {
                all = merge(all, run(&mut state, number, item));
                number += 1;
            }
            Some(all)
        });
        let mut all = None;
        for part in parts {
            all = match (all, opened(part)) {
                (Some(all), Some(part)) => Some(merge(all, part)),
                (all, part) => all.or(part),
            };
        }
        all
    }

    /// Folds runs of items, one item at a time, into a value of `begin`, and merges them in order; returns the error of
    /// the lowest item with an error.
    pub(crate) fn try_fold<R: Send + 'static, E: Send + 'static>(
        self,
        begin: impl Fn() -> R + Sync,
        fold: impl Fn(&mut R, usize, P::Item) -> Result<(), E> + Sync,
        merge: impl Fn(&mut R, R) + Sync,
    ) -> Result<R, E> {
        // The lowest item that failed: items after it need not be processed.
        let failed = AtomicUsize::new(usize::MAX);
        let parts = self.in_order(&|mut number, mut items| {
            let mut all = begin();
            while number < failed.load(Ordering::Relaxed)
                && let Some(item) = items.next()
            {
                if let Err(error) = fold(&mut all, number, item) {
                    failed.fetch_min(number, Ordering::Relaxed);
                    return Err(error);
                }
                number += 1;
            }
            Ok(all)
        });
        let mut all = None;
        for part in parts {
            let part = opened::<Result<R, E>>(part)?;
            match &mut all {
                Some(all) => merge(all, part),
                None => all = Some(part),
            }
        }
        Ok(all.unwrap_or_else(begin))
    }

    /// Calls `run` with the number of every item and the item; returns the error of the lowest item with an error.
    /// After an error not all run.
    pub(crate) fn try_each<E: Send>(
        self,
        run: impl Fn(usize, P::Item) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        self.try_each_with(|| (), |(), number, item| run(number, item))
    }

    /// Does [`Tasks::try_each`] with a value of `begin` for every run of items.
    pub(crate) fn try_each_with<S, E: Send>(
        self,
        begin: impl Fn() -> S + Sync,
        run: impl Fn(&mut S, usize, P::Item) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let (failed, lowest) = (AtomicUsize::new(usize::MAX), Mutex::new(None));
        self.run(&|mut number, mut items| {
            let mut state = begin();
            while number < failed.load(Ordering::Relaxed)
                && let Some(item) = items.next()
            {
                if let Err(error) = run(&mut state, number, item) {
                    let mut lowest = lowest.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.fetch_min(number, Ordering::Relaxed) > number {
                        *lowest = Some(error);
                    }
                    return;
                }
                number += 1;
            }
        });
        let lowest = lowest.into_inner().unwrap_or_else(PoisonError::into_inner);
        lowest.map_or(Ok(()), Err)
    }

    /// True if `test` is true for every item; after a false one, not all are tested.
    pub(crate) fn all(self, test: impl Fn(P::Item) -> bool + Sync) -> bool {
        let holds = |_, item| if test(item) { Ok(()) } else { Err(()) };
        self.try_each(holds).is_ok()
    }

    /// Returns the results of `part` for runs of items, in order; `part` receives the number of the first item of each.
    fn in_order<R: Send + 'static>(self, part: &(dyn Fn(usize, P) -> R + Sync)) -> Vec<RunResult> {
        let found = Mutex::new(Vec::new());
        self.run(&|first, items| keep(&found, first, Box::new(part(first, items))));
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `part` with runs of all items, and the number of the first item of each.
    fn run(self, part: &(dyn Fn(usize, P) + Sync)) {
        let cut = Cut::of(self.items.count(), self.least);
        halves(0, self.items, cut, part);
    }
}

/// The result of a run of items, and the number of the first.
type RunResult = (usize, Box<dyn Any + Send>);

/// Stores a part in its place.
fn keep(found: &Mutex<Vec<RunResult>>, first: usize, part: Box<dyn Any + Send>) {
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    let place = found.partition_point(|&(before, _)| before < first);
    found.insert(place, (first, part));
}

/// Returns a part with its type.
fn opened<R: 'static>((_, part): RunResult) -> R {
    *part.downcast().expect("all parts are of one type")
}

/// How often a run of items will still be split.
#[derive(Clone, Copy)]
struct Cut {
    least: usize,
    splits: usize,
    /// True if another thread took the run: there are idle threads.
    moved: bool,
}

impl Cut {
    /// Returns the splits for so many items, with at least `least` consecutive ones per thread.
    fn of(items: usize, least: usize) -> Self {
        Self {
            least,
            // For too few items, the pool is not consulted.
            splits: if items / 2 < least {
                0
            } else {
                rayon::current_num_threads()
            },
            moved: false,
        }
    }

    /// Returns the splits of halves of `len` items, unless they should stay one run.
    fn next(self, len: usize) -> Option<Self> {
        if len / 2 < self.least {
            return None;
        }
        let splits = match (self.moved, self.splits) {
            (true, splits) => (splits / 2).max(rayon::current_num_threads()),
            (false, 0) => return None,
            (false, splits) => splits / 2,
        };
        Some(Self { splits, ..self })
    }
}

/// Calls `part` with runs of all items; `first` is the number of the first.
fn halves<P: Split>(first: usize, items: P, cut: Cut, part: &(dyn Fn(usize, P) + Sync)) {
    let len = items.count();
    let Some(cut) = cut.next(len) else {
        return part(first, items);
    };
    let (left, right) = items.split_at(len / 2);
    let (mut left, mut right) = (Some(left), Some(right));
    let side = |first, side: &mut Option<P>, moved| {
        if let Some(items) = side.take() {
            halves(first, items, Cut { moved, ..cut }, part);
        }
    };
    fork(&mut |moved| side(first, &mut left, moved), &mut |moved| {
        side(first + len / 2, &mut right, moved)
    });
}

/// Returns the elements of parts.
fn joined<R: 'static>(parts: Vec<RunResult>) -> Vec<R> {
    let mut all = Vec::new();
    for part in parts {
        let mut part = opened(part);
        if all.is_empty() {
            all = part;
        } else {
            all.append(&mut part);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_items_is_in_their_order() {
        let values: Vec<u32> = (0..1003).collect();
        for (size, least) in [(1, 1), (7, 1), (7, 40), (1003, 1), (usize::MAX, 1)] {
            let tasks = || chunks(&values, size).at_least(least);
            let found = tasks().gather(|number, part| (number, part.to_vec()));
            let numbers = found.iter().map(|part| part.0);
            assert!(numbers.eq(0..found.len()));
            let parts: Vec<_> = found.into_iter().map(|part| part.1).collect();
            assert_eq!(parts.concat(), values);
            let joined = tasks().reduce(|_, part| part.to_vec(), |a, b| [a, b].concat());
            assert_eq!(joined.as_ref(), Some(&values));
            let mut out = vec![0; values.len()];
            let pairs = tasks().zip(chunks_mut(&mut out, size)).backwards();
            pairs.each(|_, (from, to)| to.copy_from_slice(from));
            assert_eq!(out, values);
        }
        assert!(numbers(5..5).gather(|_, number| number).is_empty());
        assert_eq!(numbers(5..5).reduce(|_, number| number, usize::max), None);
    }

    #[test]
    fn the_lowest_error_is_told() {
        for bad in [0, 1, 500, 998] {
            let check = |_, number| if number < bad { Ok(()) } else { Err(number) };
            assert_eq!(numbers(0..999).try_each(check), Err(bad));
            let add = |sum: &mut usize, _, number| {
                *sum += number;
                check(0, number)
            };
            let found = numbers(0..999).try_fold(|| 0, add, |sum, more| *sum += more);
            assert_eq!(found, Err(bad));
            let found = numbers(0..bad).try_fold(|| 0, add, |sum, more| *sum += more);
            assert_eq!(found, Ok((0..bad).sum()));
        }
    }

    #[test]
    fn both_sides_of_a_fork_give_what_they_have() {
        assert_eq!(both(|| 1, || "two"), (1, "two"));
    }
}
