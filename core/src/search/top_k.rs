//! The best k of a stream of scores, in the caller's slice.

use core::cmp::Ordering;

use super::Score;

/// A row found by a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hit<S> {
    /// Index of the row.
    pub index: usize,
    /// Score of the row.
    pub score: S,
}

impl<S> Hit<S> {
    /// Returns the bytes of `count` hits on a machine with addresses of 32 bits, such as a Cortex-M; the largest
    /// `usize` if there are more.
    ///
    /// ```
    /// use tercet_core::search::{Hit, IntegerCosine, Larger};
    ///
    /// assert_eq!(Hit::<Larger<i32>>::bytes(10), 10 * 8);
    /// // A cosine has 64 bits of squared lengths, aligned to 8 bytes.
    /// assert_eq!(Hit::<IntegerCosine>::bytes(10), 10 * 24);
    /// ```
    pub const fn bytes(count: usize) -> usize {
        let index = size_of::<u32>();
        let align = if align_of::<S>() > index {
            align_of::<S>()
        } else {
            index
        };
        // Neither is near the largest number.
        let one = (index + size_of::<S>()).next_multiple_of(align);
        count.saturating_mul(one)
    }
}

/// What [`Hit::bytes`] returns elsewhere is what a machine with such addresses has.
#[cfg(all(target_pointer_width = "32", target_arch = "arm"))]
const _: () = {
    use super::{IntegerCosine, SignedSquare, Smaller};
    assert!(Hit::<IntegerCosine>::bytes(1) == size_of::<Hit<IntegerCosine>>());
    assert!(Hit::<SignedSquare>::bytes(1) == size_of::<Hit<SignedSquare>>());
    assert!(Hit::<Smaller<u32>>::bytes(1) == size_of::<Hit<Smaller<u32>>>());
};

impl<S: Score> Hit<S> {
    /// Returns `Greater` if `self` is the better hit: by score, then by lower index. Returns `Equal` only if both are
    /// equal.
    #[inline]
    pub fn rank(&self, other: &Self) -> Ordering {
        let scores = self.score.rank(&other.score);
        scores.then_with(|| other.index.cmp(&self.index))
    }
}

/// Keeps the best hits that its slice has space for, as a binary heap with the worst at the root.
///
/// A push costs one comparison if the hit is not among the best, otherwise O(log k). [`Hit::rank`] never ranks two
/// rows as equal, so the result does not depend on the order of pushes or on the way rows were split and merged.
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
    /// Creates an empty collection. k is the length of `room`, whose content does not matter.
    pub fn new(room: &'a mut [Hit<S>]) -> Self {
        Self { heap: room, len: 0 }
    }

    /// Returns the number of hits kept so far.
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

    /// Returns the hit that the next one must beat; `None` while there is space.
    #[inline]
    pub fn worst(&self) -> Option<&Hit<S>> {
        self.heap.first().filter(|_| self.len == self.heap.len())
    }

    /// Offers every hit that another collection kept. Indices must be of the same base.
    pub fn merge(&mut self, other: &TopK<'_, S>) {
        for hit in other.heap.iter().take(other.len) {
            self.push(hit.index, hit.score);
        }
    }

    /// Returns the kept hits, best first. O(k log k), in place.
    pub fn into_sorted(mut self) -> &'a mut [Hit<S>] {
        let found = self.len;
        while self.len > 1 {
            // The worst goes behind the remaining ones.
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

    /// Adds a hit at the end and moves it up while its parent is better.
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

    /// Replaces the root by a hit and moves the hit down while a child is worse.
    fn sink(&mut self, hit: Hit<S>) {
        let mut at = 0;
        // Only the used part; the rest of the slice is not part of the heap.
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
