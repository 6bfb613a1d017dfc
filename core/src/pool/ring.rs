//! A sliding window over the newest values of a stream.
#![forbid(unsafe_code)]

use core::iter::Chain;
use core::ops::Range;
use core::slice;

use super::Stats;

/// The newest `SLOTS` values of a stream: a window over a sensor, the keys and values of a model's last tokens.
///
/// A new value takes the place of the oldest where all slots are held. Every value has a **position**, its number in
/// the stream from 0 on, which it keeps however far the window slides (a `u64`: it does not wrap at a value a nanosecond for
/// 584 years), and an **age**, 0 for the newest. All slots lie in one array, in stream order but for one place where the end
/// meets the start, so the window is at most two slices.
///
/// Everything is O(1). A `static` ring of zeros lies in `.bss`. A slot can be a row: `Ring<[i8; 64], 128>`.
///
/// ```
/// use tercet_core::pool::Ring;
///
/// let mut keys = Ring::<[i8; 4], 3>::new([0; 4]);
/// for token in 0..5_i8 {
///     // Fill the slot in place; it still holds what was evicted.
///     keys.advance().fill(token);
/// }
/// assert_eq!(keys.positions(), 2..5);
/// assert_eq!((keys.get(0), keys.at(2)), (Some(&[4; 4]), Some(&[2; 4])));
///
/// // As two row-major matrices, oldest row first.
/// let (old, new) = keys.as_flat_slices();
/// assert_eq!((old, new), (&[2; 4][..], &[3, 3, 3, 3, 4, 4, 4, 4][..]));
/// ```
///
/// # Between an interrupt and the program
///
/// A window that overwrites cannot be shared without a lock: the reader's slice would change under it. Either the interrupt
/// sends values through a queue (`heapless::spsc`) to the program, which owns the ring and never blocks:
///
/// ```
/// use heapless::spsc::Queue;
/// use tercet_core::pool::Ring;
///
/// let mut queue = Queue::<[i16; 3], 8>::new();
/// // `producer` goes to the interrupt, `consumer` stays here.
/// let (mut producer, mut consumer) = queue.split();
/// let mut window = Ring::<[i16; 3], 32>::new([0; 3]);
///
/// producer.enqueue([1, 2, 3]).unwrap();
/// while let Some(sample) = consumer.dequeue() {
///     window.push(sample);
/// }
/// assert_eq!(window.latest(), Some(&[1, 2, 3]));
/// ```
///
/// or both sides enter a critical section, the interrupt for one push and the program for one copy of the window:
/// that is `Guarded<Ring<T, SLOTS>>` (feature `critical-section`).
///
/// Beside heapless' `HistoryBuf` it has positions, slots filled in place and flat rows; it evicts by the same rule.
#[derive(Clone, Debug)]
pub struct Ring<T, const SLOTS: usize> {
    slots: [T; SLOTS],
    /// The slot that the next value takes; below `SLOTS`.
    next: usize,
    /// Slots held; at most `SLOTS`.
    len: usize,
    /// Values taken so far, the next one's position.
    end: u64,
    high_water: usize,
}

/// The values of a [`Ring`], oldest first.
pub type RingIter<'a, T> = Chain<slice::Iter<'a, T>, slice::Iter<'a, T>>;

impl<T, const SLOTS: usize> Ring<T, SLOTS> {
    /// An empty window whose slots hold `fill` until values come.
    pub const fn new(fill: T) -> Self
    where
        T: Copy,
    {
        Self::from_slots([fill; SLOTS])
    }

    /// An empty window over slots that exist already; values take them in order from index 0 on.
    pub const fn from_slots(slots: [T; SLOTS]) -> Self {
        const { assert!(SLOTS > 0, "a ring needs a slot") };
        Self {
            slots,
            next: 0,
            len: 0,
            end: 0,
            high_water: 0,
        }
    }

    /// Appends a value and returns what it evicts, if the window was full.
    #[inline]
    pub fn push(&mut self, value: T) -> Option<T> {
        let full = self.is_full();
        let old = core::mem::replace(self.advance(), value);
        full.then_some(old)
    }

    /// Appends a slot for the caller to fill in place. It still holds what was there before: the oldest value where
    /// the window was full, which is evicted by this.
    #[inline]
    pub fn advance(&mut self) -> &mut T {
        let at = if self.next < SLOTS { self.next } else { 0 };
        self.next = if at + 1 < SLOTS { at + 1 } else { 0 };
        self.len = (self.len + 1).min(SLOTS);
        self.high_water = self.high_water.max(self.len);
        self.end += 1;
        &mut self.slots[at]
    }

    /// Forgets every value; positions go on. Values stay in their slots until others come. O(1).
    pub fn clear(&mut self) {
        self.len = 0;
        // The next value starts the array, so the window is one slice for as long as it can be.
        self.next = 0;
    }

    /// Values held.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no value is held.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the next value evicts one.
    pub const fn is_full(&self) -> bool {
        self.len == SLOTS
    }

    /// Values that can be held, `SLOTS`.
    pub const fn capacity(&self) -> usize {
        SLOTS
    }

    /// The positions held, oldest to newest; its end is the next value's position and the number of values so far.
    pub const fn positions(&self) -> Range<u64> {
        self.end - self.len as u64..self.end
    }

    /// Values that were taken and are held no more, evicted or cleared.
    pub const fn gone(&self) -> u64 {
        self.end - self.len as u64
    }

    /// Slots in use; nothing is ever refused, the oldest goes instead.
    pub const fn stats(&self) -> Stats {
        Stats {
            capacity: SLOTS,
            in_use: self.len,
            high_water: self.high_water,
            failures: 0,
        }
    }

    /// The value of an age, 0 for the newest.
    #[inline]
    pub fn get(&self, age: usize) -> Option<&T> {
        self.slots.get(self.slot(age)?)
    }

    /// The value of an age, 0 for the newest, to change.
    #[inline]
    pub fn get_mut(&mut self, age: usize) -> Option<&mut T> {
        let at = self.slot(age)?;
        self.slots.get_mut(at)
    }

    /// The value of a position; `None` where it is gone or has not come yet.
    #[inline]
    pub fn at(&self, position: u64) -> Option<&T> {
        let age = self.end.checked_sub(position)?.checked_sub(1)?;
        self.get(usize::try_from(age).ok()?)
    }

    /// The newest value.
    #[inline]
    pub fn latest(&self) -> Option<&T> {
        self.get(0)
    }

    /// The oldest value, the next to be evicted.
    #[inline]
    pub fn oldest(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// All values, oldest first; the second slice goes on where the first ends.
    #[inline]
    pub fn as_slices(&self) -> (&[T], &[T]) {
        self.last(self.len)
    }

    /// All values to change, oldest first.
    #[inline]
    pub fn as_mut_slices(&mut self) -> (&mut [T], &mut [T]) {
        let (behind, from) = self.split(self.len);
        let (new, old) = self
            .slots
            .split_at_mut_checked(self.next)
            .unwrap_or_default();
        (
            old.get_mut(behind..).unwrap_or_default(),
            new.get_mut(from..).unwrap_or_default(),
        )
    }

    /// The newest `len` values, oldest first; `None` where fewer are held.
    #[inline]
    pub fn window(&self, len: usize) -> Option<(&[T], &[T])> {
        (len <= self.len).then(|| self.last(len))
    }

    /// The values, oldest first; from the back, newest first.
    pub fn iter(&self) -> RingIter<'_, T> {
        let (old, new) = self.as_slices();
        old.iter().chain(new)
    }

    /// Copies the newest values that `out` has room for to its front, oldest first, and says how many. O(values).
    pub fn copy_to(&self, out: &mut [T]) -> usize
    where
        T: Copy,
    {
        let len = self.len.min(out.len());
        let (old, new) = self.last(len);
        for (place, value) in out.iter_mut().zip(old.iter().chain(new)) {
            *place = *value;
        }
        len
    }

    /// The slot of an age.
    #[inline]
    fn slot(&self, age: usize) -> Option<usize> {
        if age >= self.len {
            return None;
        }
        // `age + 1` is at most SLOTS, and `next` below it.
        let behind = age + 1;
        Some(if behind <= self.next {
            self.next - behind
        } else {
            self.next + SLOTS - behind
        })
    }

    /// Where the newest `len` values, which are held, begin: in the slots from `next` on, and in those before it.
    #[inline]
    fn split(&self, len: usize) -> (usize, usize) {
        match self.next.checked_sub(len) {
            Some(start) => (SLOTS - self.next, start),
            None => (SLOTS - len, 0),
        }
    }

    /// The newest `len` values, which are held.
    #[inline]
    fn last(&self, len: usize) -> (&[T], &[T]) {
        let (behind, from) = self.split(len);
        let (new, old) = self.slots.split_at_checked(self.next).unwrap_or_default();
        (
            old.get(behind..).unwrap_or_default(),
            new.get(from..).unwrap_or_default(),
        )
    }
}

impl<T, const WIDTH: usize, const SLOTS: usize> Ring<[T; WIDTH], SLOTS> {
    /// All rows as two row-major matrices, oldest row first; the second goes on where the first ends.
    #[inline]
    pub fn as_flat_slices(&self) -> (&[T], &[T]) {
        let (old, new) = self.as_slices();
        (old.as_flattened(), new.as_flattened())
    }
}

impl<'a, T, const SLOTS: usize> IntoIterator for &'a Ring<T, SLOTS> {
    type Item = &'a T;
    type IntoIter = RingIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(feature = "defmt")]
impl<T, const SLOTS: usize> defmt::Format for Ring<T, SLOTS> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "Ring(end {}, {})", self.end, self.stats())
    }
}
