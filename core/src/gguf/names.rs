//! Finds duplicate names with borrowed scratch.

use super::cursor::Cursor;
use super::read::Reader;
use super::{GgufError, tensor::Listed};

impl<'a> Reader<'a> {
    /// Returns the scratch length for [`Reader::check_names`]: the larger of the numbers of entries and tensors.
    pub const fn name_scratch_len(&self) -> usize {
        if self.entries > self.tensors {
            self.entries
        } else {
            self.tensors
        }
    }

    /// Checks that no two metadata entries have the same key and no two tensors the same name, with O(n log n)
    /// comparisons.
    ///
    /// `scratch` holds at least [`Reader::name_scratch_len`] elements; its content does not matter.
    ///
    /// # Errors
    /// [`GgufError::DuplicateKey`] or [`GgufError::DuplicateTensor`], with the first repetition in the file;
    /// [`GgufError::Scratch`]; [`GgufError::HeaderLength`] for more than 4 GiB of metadata or descriptions.
    pub fn check_names(&self, scratch: &mut [u32]) -> Result<(), GgufError> {
        let mut metadata = self.metadata();
        let step = || {
            let at = metadata.offset();
            metadata.next().map(|_| at)
        };
        if let Some(offset) = repeated(self.entries_at, self.entries, scratch, step)? {
            return Err(GgufError::DuplicateKey { offset });
        }
        let mut cursor = self.tensors_at;
        let step = || {
            let at = cursor.offset();
            Listed::read(&mut cursor, 0).ok().map(|_| at)
        };
        if let Some(offset) = repeated(self.tensors_at, self.tensors, scratch, step)? {
            return Err(GgufError::DuplicateTensor { offset });
        }
        Ok(())
    }
}

/// Returns the lowest offset of an item that has the name of an earlier item.
///
/// An item begins with its name. `base` is at the first of `count` items, and `step` returns their offsets one after
/// the other. Scratch holds offsets from `base`, sorted by name, then by offset.
fn repeated(
    base: Cursor<'_>,
    count: usize,
    scratch: &mut [u32],
    mut step: impl FnMut() -> Option<usize>,
) -> Result<Option<usize>, GgufError> {
    let places = scratch
        .get_mut(..count)
        .ok_or(GgufError::Scratch { needed: count })?;
    for place in places.iter_mut() {
        let from_base = step().map(|offset| offset.wrapping_sub(base.offset()));
        *place = from_base
            .and_then(|offset| u32::try_from(offset).ok())
            .ok_or(GgufError::HeaderLength)?;
    }
    let name = |place: u32| {
        let rest = base.rest().get(place as usize..).unwrap_or_default();
        Cursor::new(rest, 0).string_bytes().unwrap_or_default()
    };
    heap_sort(places, |a, b| (name(a), a) < (name(b), b));
    let mut lowest = None;
    for pair in places.windows(2) {
        if let [first, second] = *pair
            && name(first) == name(second)
            && lowest.is_none_or(|lowest| second < lowest)
        {
            lowest = Some(second);
        }
    }
    Ok(lowest.map(|place| base.offset().wrapping_add(place as usize)))
}

/// Sorts with O(n log n) comparisons in the worst case. The standard library's sort is faster, but larger, and checks
/// its order with a panic; this crate has none.
fn heap_sort(items: &mut [u32], less: impl Fn(u32, u32) -> bool) {
    for root in (0..items.len() / 2).rev() {
        sift_down(items, root, &less);
    }
    let mut unsorted = items;
    while let Some((first, [between @ .., last])) = unsorted.split_first_mut() {
        core::mem::swap(first, last);
        let len = between.len().saturating_add(1);
        unsorted = unsorted.get_mut(..len).unwrap_or_default();
        sift_down(unsorted, 0, &less);
    }
}

/// Moves the item at `root` down until no child is greater.
fn sift_down(items: &mut [u32], mut root: usize, less: &impl Fn(u32, u32) -> bool) {
    let Some(&item) = items.get(root) else {
        return;
    };
    loop {
        let left = root.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        let Some(&first) = items.get(left) else {
            break;
        };
        let (child, greater) = match items.get(right) {
            Some(&second) if less(first, second) => (right, second),
            _ => (left, first),
        };
        if !less(item, greater) {
            break;
        }
        if let Some(slot) = items.get_mut(root) {
            *slot = greater;
        }
        root = child;
    }
    if let Some(slot) = items.get_mut(root) {
        *slot = item;
    }
}
