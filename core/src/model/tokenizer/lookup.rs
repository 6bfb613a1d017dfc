//! A hash table with open addressing in the caller's memory.
//!
//! A slot is 0, or an element's number plus one in its low 24 bits, with the 8 highest bits of the element's hash
//! above them. These bits save most comparisons with other elements. At most two thirds of the slots are used. An
//! element is stored in the first free slot from its own on. A file whose elements collide too often is refused; this
//! only happens if it is constructed to do so.

use super::TokenizerError;

/// Largest number of elements: 24 bits minus the 0 of the empty slot.
pub(super) const MOST: usize = (1 << 24) - 2;

/// Largest number of slots passed before an element is stored. With two thirds used, 2²⁴ elements stay below a
/// quarter of this.
const FAR: usize = 1024;

/// Returns the number of slots for `count` elements, at most [`MOST`]; a power of two.
pub(super) const fn slots(count: usize) -> usize {
    // Cannot wrap or overflow: 2²⁴ · 1.5 is far below the 32 bits that core requires of usize.
    count
        .saturating_add(count / 2)
        .saturating_add(1)
        .next_power_of_two()
}

/// The hash of a text, computed byte by byte: FNV-1a, with its bits mixed at the end (MurmurHash3's finalizer).
#[derive(Clone, Copy, Debug)]
pub(super) struct TextHash(u32);

impl TextHash {
    pub(super) const fn new() -> Self {
        Self(0x811C_9DC5)
    }

    #[inline]
    pub(super) const fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u32).wrapping_mul(0x0100_0193))
    }

    #[inline]
    pub(super) const fn finish(self) -> u32 {
        let hash = (self.0 ^ self.0 >> 16).wrapping_mul(0x85EB_CA6B);
        let hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
        hash ^ hash >> 16
    }
}

/// Returns the hash of a pair of tokens.
#[inline]
pub(super) const fn pair_hash(left: u32, right: u32) -> u32 {
    let pair = (left as u64) << 32 | right as u64;
    let mixed = (pair ^ pair >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32
}

/// Returns the element with that hash for which `same` is true.
#[inline]
pub(super) fn find(slots: &[u32], hash: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
    let mask = slots.len().wrapping_sub(1);
    let mut at = hash as usize & mask;
    loop {
        let slot = *slots.get(at)?;
        // Ends here for the empty slot.
        let element = (slot & 0x00FF_FFFF).checked_sub(1)?;
        if (slot ^ hash) >> 24 == 0 && same(element) {
            return Some(element);
        }
        at = at.wrapping_add(1) & mask;
    }
}

/// Stores an element, unless `same` is true for a stored one: then returns that one.
///
/// # Errors
/// [`TokenizerError::Collisions`].
pub(super) fn insert(
    slots: &mut [u32],
    hash: u32,
    element: u32,
    key: &'static str,
    same: impl Fn(u32) -> bool,
) -> Result<Option<u32>, TokenizerError> {
    let mask = slots.len().wrapping_sub(1);
    let mut at = hash as usize & mask;
    for _ in 0..FAR {
        let Some(slot) = slots.get_mut(at) else {
            break;
        };
        match (*slot & 0x00FF_FFFF).checked_sub(1) {
            None => {
                *slot = hash & 0xFF00_0000 | element.wrapping_add(1) & 0x00FF_FFFF;
                return Ok(None);
            }
            Some(there) if (*slot ^ hash) >> 24 == 0 && same(there) => return Ok(Some(there)),
            Some(_) => at = at.wrapping_add(1) & mask,
        }
    }
    Err(TokenizerError::Collisions { key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn elements_are_found_by_what_they_are() {
        let elements: vec::Vec<u32> = (0..5000u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        let mut table = vec![0; slots(elements.len())];
        for (number, &element) in (0..).zip(&elements) {
            let hash = pair_hash(element, 7);
            let same = |there: u32| elements[there as usize] == element;
            assert_eq!(insert(&mut table, hash, number, "k", same), Ok(None));
            assert_eq!(insert(&mut table, hash, 9, "k", same), Ok(Some(number)));
        }
        for (number, &element) in (0..).zip(&elements) {
            let same = |there: u32| elements[there as usize] == element;
            assert_eq!(find(&table, pair_hash(element, 7), same), Some(number));
            assert_eq!(find(&table, pair_hash(element, 8), |_| false), None);
        }
    }

    #[test]
    fn elements_that_crowd_are_refused() {
        let mut table = vec![0; slots(5000)];
        let outcomes = (0..5000).map(|number| insert(&mut table, 3, number, "k", |_| false));
        let refused =
            outcomes.filter(|outcome| *outcome == Err(TokenizerError::Collisions { key: "k" }));
        assert_eq!(refused.count(), 5000 - FAR);
    }

    #[test]
    fn there_is_always_an_empty_slot() {
        for count in 0..1000 {
            assert!(slots(count) > count && slots(count).is_power_of_two());
        }
        assert_eq!(slots(MOST), 1 << 25);
    }
}
