//! The best k of a stream of scores, in the caller's slice.

use core::cmp::Ordering;

use super::Score;

/// A row that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hit<S> {
    /// The row.
    pub index: usize,
    /// How well it fits.
    pub score: S,
}

impl<S: Score> Hit<S> {
    /// `Greater` where `self` is the better hit: by score, then the lower index. Equal only where both are.
    #[inline]
    pub fn rank(&self, other: &Self) -> Ordering {
        let scores = self.score.rank(&other.score);
        scores.then_with(|| other.index.cmp(&self.index))
    }
}

/// Keeps the best hits that its slice has room for, as a binary heap with the worst at the root.
///
/// A push costs one comparison where the hit is not among the best, else O(log k). Since [`Hit::rank`] leaves no two rows
/// equal, neither the order of pushes nor how rows were split and merged can show in what is kept.
///
/// ```
/// use tercet_core::search::{Hit, Larger, TopK};
///
/// let mut room = [Hit::default(); 2];
/// let mut best = TopK::new(&mut room);
/// for (index, score) in [3, 7, 7, 5].into_iter().enumerate() {
///     best.push(index, Larger(score));
/// }
/// let found = best.into_sorted();
/// assert_eq!([found[0].index, found[1].index], [1, 2]);
/// ```
#[derive(Debug)]
pub struct TopK<'a, S> {
    heap: &'a mut [Hit<S>],
    len: usize,
}

impl<'a, S: Score> TopK<'a, S> {
    /// Starts with nothing kept; k is the length of `room`, whose content does not matter.
    pub fn new(room: &'a mut [Hit<S>]) -> Self {
        Self { heap: room, len: 0 }
    }

    /// How many hits are kept so far.
    #[expect(clippy::len_without_is_empty, reason = "a count, not a container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Offers a row.
    #[inline]
    pub fn push(&mut self, index: usize, score: S) {
        let hit = Hit { index, score };
        if self.len < self.heap.len() {
            self.rise(hit);
        } else if let Some(worst) = self.heap.first()
            && hit.rank(worst) == Ordering::Greater
        {
            self.sink(hit);
        }
    }

    /// The hit that the next one must beat to be kept; `None` while there is room.
    #[inline]
    pub fn worst(&self) -> Option<&Hit<S>> {
        self.heap.first().filter(|_| self.len == self.heap.len())
    }

    /// Offers every hit that another one kept; indices must be of the same base.
    pub fn merge(&mut self, other: &TopK<'_, S>) {
        for hit in other.heap.iter().take(other.len) {
            self.push(hit.index, hit.score);
        }
    }

    /// The hits kept, best first. O(k log k), in place.
    pub fn into_sorted(mut self) -> &'a mut [Hit<S>] {
        let found = self.len;
        while self.len > 1 {
            // The worst goes behind those that are left.
            let last = self.len - 1;
            let (Some(&worst), Some(&hit)) = (self.heap.first(), self.heap.get(last)) else {
                break;
            };
            self.len = last;
            self.sink(hit);
            if let Some(place) = self.heap.get_mut(last) {
                *place = worst;
            }
        }
        self.heap.get_mut(..found).unwrap_or_default()
    }

    /// Adds a hit at the end and moves it up to where its parent is worse.
    fn rise(&mut self, hit: Hit<S>) {
        let mut at = self.len;
        self.len += 1;
        while at > 0 {
            let above = (at - 1) / 2;
            match self.heap.get(above) {
                Some(&parent) if hit.rank(&parent) == Ordering::Less => {
                    self.put(at, parent);
                    at = above;
                }
                _ => break,
            }
        }
        self.put(at, hit);
    }

    /// Replaces the root by a hit and moves it down to where its children are better.
    fn sink(&mut self, hit: Hit<S>) {
        let mut at = 0;
        // Of those in use; the rest of the slice is not part of the heap.
        while let Some(used) = self.heap.get(..self.len) {
            let left = 2 * at + 1;
            let worse = match (used.get(left), used.get(left + 1)) {
                (Some(a), Some(b)) if b.rank(a) == Ordering::Less => Some((left + 1, *b)),
                (Some(a), _) => Some((left, *a)),
                (None, _) => None,
            };
            match worse {
                Some((child, worse)) if worse.rank(&hit) == Ordering::Less => {
                    self.put(at, worse);
                    at = child;
                }
                _ => break,
            }
        }
        self.put(at, hit);
    }

    #[inline]
    fn put(&mut self, at: usize, hit: Hit<S>) {
        if let Some(place) = self.heap.get_mut(at) {
            *place = hit;
        }
    }
}
