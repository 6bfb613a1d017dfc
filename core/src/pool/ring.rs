//! A sliding window over the newest values of a stream.
#![forbid(unsafe_code)]

use core::iter::Chain;
use core::ops::Range;
use core::slice;

use super::Stats;

/// The newest `SLOTS` values of a stream: for example a window over a sensor, or the keys and values of a model's
/// last tokens.
///
/// A new value replaces the oldest if all slots are used. Every value has a **position**, its number in the stream
/// from 0 on, which it keeps while the window slides. (A `u64`: at one value per nanosecond it does not wrap for 584
/// years.) It also has an **age**, 0 for the newest. All slots are in one array, in stream order except at the one
/// place where the end meets the start, so the window is at most two slices.
///
/// Every operation is O(1). A `static` ring of zeros is in `.bss`. A slot can be a row: `Ring<[i8; 64], 128>`.
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
/// A window that overwrites its values cannot be shared without a lock: the reader's slice would change during the
/// read. One way is that the interrupt sends values through a queue (`heapless::spsc`) to the program, which owns the
/// ring and never blocks:
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
/// The other way is that both sides enter a critical section, the interrupt for one push and the program for one copy
/// of the window: this is `Guarded<Ring<T, SLOTS>>` (feature `critical-section`).
///
/// Compared to heapless' `HistoryBuf`, it also has positions, slots filled in place, and flat rows. It evicts by the
/// same rule.
#[derive(Clone, Debug)]
pub struct Ring<T, const SLOTS: usize> {
    slots: [T; SLOTS],
    /// The slot for the next value; below `SLOTS`.
    next: usize,
    /// Number of used slots; at most `SLOTS`.
    len: usize,
    /// Number of values so far, which is the next one's position.
    end: u64,
    high_water: usize,
}

/// The values of a [`Ring`], oldest first.
pub type RingIter<'a, T> = Chain<slice::Iter<'a, T>, slice::Iter<'a, T>>;

impl<T, const SLOTS: usize> Ring<T, SLOTS> {
    /// Creates an empty window whose slots hold `fill` until values arrive.
    pub const fn new(fill: T) -> Self
    where
        T: Copy,
    {
        Self::from_slots([fill; SLOTS])
    }

    /// Creates an empty window over existing slots; values replace them in order from index 0 on.
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

    /// Appends a value and returns the value that it evicts, if the window was full.
    #[inline]
    pub fn push(&mut self, value: T) -> Option<T> {
        let full = self.is_full();
        let old = core::mem::replace(self.advance(), value);
        full.then_some(old)
    }

    /// Appends a slot that the caller fills in place. It still has its previous content: the oldest value if the
    /// window was full, which this call evicts.
    #[inline]
    pub fn advance(&mut self) -> &mut T {
        let at = if self.next < SLOTS { self.next } else { 0 };
        self.next = if at + 1 < SLOTS { at + 1 } else { 0 };
        self.len = (self.len + 1).min(SLOTS);
        self.high_water = self.high_water.max(self.len);
        self.end += 1;
        &mut self.slots[at]
    }

    /// Drops every value; positions continue. Values stay in their slots until others replace them. O(1).
    pub fn clear(&mut self) {
        self.len = 0;
        // The next value starts the array, so the window is one slice for as long as possible.
        self.next = 0;
    }

    /// Returns the number of values held.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no value is held.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the next value evicts one.
    pub const fn is_full(&self) -> bool {
        self.len == SLOTS
    }

    /// Returns the number of values that can be held, `SLOTS`.
    pub const fn capacity(&self) -> usize {
        SLOTS
    }

    /// Returns the positions held, oldest to newest. The range's end is the next value's position and the number of
    /// values so far.
    pub const fn positions(&self) -> Range<u64> {
        self.end - self.len as u64..self.end
    }

    /// Returns the number of values that are no longer held, because they were evicted or cleared.
    pub const fn gone(&self) -> u64 {
        self.end - self.len as u64
    }

    /// Returns the slots in use. No request ever fails; the oldest value is evicted instead.
    pub const fn stats(&self) -> Stats {
        Stats {
            capacity: SLOTS,
            in_use: self.len,
            high_water: self.high_water,
            failures: 0,
        }
    }

    /// Returns the value of an age, 0 for the newest.
    #[inline]
    pub fn get(&self, age: usize) -> Option<&T> {
        self.slots.get(self.slot(age)?)
    }

    /// Returns the value of an age, 0 for the newest, mutably.
    #[inline]
    pub fn get_mut(&mut self, age: usize) -> Option<&mut T> {
        let at = self.slot(age)?;
        self.slots.get_mut(at)
    }

    /// Returns the value at a position; `None` if it is no longer held or has not arrived yet.
    #[inline]
    pub fn at(&self, position: u64) -> Option<&T> {
        let age = self.end.checked_sub(position)?.checked_sub(1)?;
        self.get(usize::try_from(age).ok()?)
    }

    /// Returns the newest value.
    #[inline]
    pub fn latest(&self) -> Option<&T> {
        self.get(0)
    }

    /// Returns the oldest value, which is the next to be evicted.
    #[inline]
    pub fn oldest(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// Returns all values, oldest first; the second slice continues the first.
    #[inline]
    pub fn as_slices(&self) -> (&[T], &[T]) {
        self.last(self.len)
    }

    /// Returns all values mutably, oldest first.
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

    /// Returns the newest `len` values, oldest first; `None` if fewer are held.
    #[inline]
    pub fn window(&self, len: usize) -> Option<(&[T], &[T])> {
        (len <= self.len).then(|| self.last(len))
    }

    /// Returns the values, oldest first; from the back, newest first.
    pub fn iter(&self) -> RingIter<'_, T> {
        let (old, new) = self.as_slices();
        old.iter().chain(new)
    }

    /// Copies as many of the newest values as fit to the front of `out`, oldest first, and returns their number.
    /// O(values).
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

    /// Returns the slot of an age.
    #[inline]
    fn slot(&self, age: usize) -> Option<usize> {
        if age >= self.len {
            return None;
        }
        // `age + 1` is at most SLOTS, and `next` is below it.
        let behind = age + 1;
        Some(if behind <= self.next {
            self.next - behind
        } else {
            self.next + SLOTS - behind
        })
    }

    /// Returns the starts of the newest `len` values, which are held: in the slots from `next` on, and in those
    /// before it.
    #[inline]
    fn split(&self, len: usize) -> (usize, usize) {
        match self.next.checked_sub(len) {
            Some(start) => (SLOTS - self.next, start),
            None => (SLOTS - len, 0),
        }
    }

    /// Returns the newest `len` values, which are held.
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
    /// Returns all rows as two row-major matrices, oldest row first; the second continues the first.
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
