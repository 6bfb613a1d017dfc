//! Item lists of tasks, which can be split in two between items.

use std::ops::Range;

/// A row of items that can be split in two.
pub(crate) trait Split: Send + Sized {
    /// The input of a task.
    type Item;

    /// Returns the number of items.
    fn count(&self) -> usize;

    /// Splits off the first `at` of at least as many, and returns them and the rest.
    fn split_at(self, at: usize) -> (Self, Self);

    /// Removes and returns the first item.
    fn next(&mut self) -> Option<Self::Item>;
}

/// Slices of a slice.
pub(crate) struct Chunks<'a, T> {
    pub(super) all: &'a [T],
    pub(super) size: usize,
}

impl<'a, T: Sync> Split for Chunks<'a, T> {
    type Item = &'a [T];

    fn count(&self) -> usize {
        self.all.len().div_ceil(self.size)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let at = at.saturating_mul(self.size).min(self.all.len());
        let (left, right) = self.all.split_at(at);
        let part = |all| Self { all, ..self };
        (part(left), part(right))
    }

    fn next(&mut self) -> Option<&'a [T]> {
        if self.all.is_empty() {
            return None;
        }
        let (first, rest) = self.all.split_at(self.size.min(self.all.len()));
        self.all = rest;
        Some(first)
    }
}

/// Slices of a slice to write to.
pub(crate) struct ChunksMut<'a, T> {
    pub(super) all: &'a mut [T],
    pub(super) size: usize,
}

impl<'a, T: Send> Split for ChunksMut<'a, T> {
    type Item = &'a mut [T];

    fn count(&self) -> usize {
        self.all.len().div_ceil(self.size)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let size = self.size;
        let at = at.saturating_mul(size).min(self.all.len());
        let (left, right) = self.all.split_at_mut(at);
        (Self { all: left, size }, Self { all: right, size })
    }

    fn next(&mut self) -> Option<&'a mut [T]> {
        if self.all.is_empty() {
            return None;
        }
        let all = std::mem::take(&mut self.all);
        let (first, rest) = all.split_at_mut(self.size.min(all.len()));
        self.all = rest;
        Some(first)
    }
}

impl<'a, T: Sync> Split for &'a [T] {
    type Item = &'a T;

    fn count(&self) -> usize {
        self.len()
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        <[T]>::split_at(self, at)
    }

    fn next(&mut self) -> Option<&'a T> {
        self.split_off_first()
    }
}

impl<'a, T: Send> Split for &'a mut [T] {
    type Item = &'a mut T;

    fn count(&self) -> usize {
        self.len()
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }

    fn next(&mut self) -> Option<&'a mut T> {
        self.split_off_first_mut()
    }
}

impl Split for Range<usize> {
    type Item = usize;

    fn count(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let at = self.start + at;
        (self.start..at, at..self.end)
    }

    fn next(&mut self) -> Option<usize> {
        Iterator::next(self)
    }
}

/// Items of two lists in pairs.
pub(crate) struct Zip<A, B>(pub(super) A, pub(super) B);

impl<A: Split, B: Split> Split for Zip<A, B> {
    type Item = (A::Item, B::Item);

    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let (a, b) = (self.0.split_at(at), self.1.split_at(at));
        (Self(a.0, b.0), Self(a.1, b.1))
    }

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.1.next()?))
    }
}

/// Items from the last to the first.
pub(crate) struct Backwards<P>(pub(super) Option<P>);

impl<P: Split> Split for Backwards<P> {
    type Item = P::Item;

    fn count(&self) -> usize {
        self.0.as_ref().map_or(0, P::count)
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let len = self.count();
        let (after, before) = (self.0.map(|items| items.split_at(len - at))).unzip();
        (Self(before), Self(after))
    }

    fn next(&mut self) -> Option<P::Item> {
        let last = self.count().checked_sub(1)?;
        let (before, mut last) = self.0.take()?.split_at(last);
        self.0 = Some(before);
        last.next()
    }
}
