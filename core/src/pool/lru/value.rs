//! A value in its blocks.

use core::iter::Flatten;

use super::link::Link;

/// A value of an [`Lru`](super::Lru): `len` elements in blocks of `BLOCK`.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a, T, const BLOCK: usize> {
    blocks: &'a [[T; BLOCK]],
    next: &'a [Link],
    first: usize,
    len: usize,
}

/// The elements of a [`Value`], in order.
pub type Elements<'a, T, const BLOCK: usize> = Flatten<Parts<'a, T, BLOCK>>;

impl<'a, T, const BLOCK: usize> Value<'a, T, BLOCK> {
    /// Creates a value. `next` holds the index of each block's successor; the value begins with block `first`.
    pub(super) fn new(
        blocks: &'a [[T; BLOCK]],
        next: &'a [Link],
        first: usize,
        len: usize,
    ) -> Self {
        Self {
            blocks,
            next,
            first,
            len,
        }
    }

    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the slices that hold it, in order: all except the last have `BLOCK` elements; an empty value has none.
    pub fn parts(&self) -> Parts<'a, T, BLOCK> {
        Parts {
            blocks: self.blocks,
            next: self.next,
            link: Link::to(self.first),
            left: self.len,
        }
    }

    /// Returns the whole value as one slice if it is in one block: up to `BLOCK` elements.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        self.blocks.get(self.first)?.get(..self.len)
    }

    /// Returns the elements, in order.
    pub fn iter(&self) -> Elements<'a, T, BLOCK> {
        self.parts().flatten()
    }

    /// Copies as many elements as fit to the front of `out`, and returns their number.
    pub fn copy_to(&self, out: &mut [T]) -> usize
    where
        T: Copy,
    {
        let len = self.len.min(out.len());
        for (part, place) in self
            .parts()
            .zip(out.chunks_mut(const { if BLOCK > 0 { BLOCK } else { 1 } }))
        {
            for (place, element) in place.iter_mut().zip(part) {
                *place = *element;
            }
        }
        len
    }
}

impl<'a, T, const BLOCK: usize> IntoIterator for Value<'a, T, BLOCK> {
    type Item = &'a T;
    type IntoIter = Elements<'a, T, BLOCK>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The slices that hold a [`Value`], in order.
#[derive(Clone, Debug)]
pub struct Parts<'a, T, const BLOCK: usize> {
    blocks: &'a [[T; BLOCK]],
    next: &'a [Link],
    link: Link,
    left: usize,
}

impl<'a, T, const BLOCK: usize> Iterator for Parts<'a, T, BLOCK> {
    type Item = &'a [T];

    #[inline]
    fn next(&mut self) -> Option<&'a [T]> {
        if self.left == 0 {
            return None;
        }
        let at = self.link.get()?;
        let block = self.blocks.get(at)?;
        let part = block.get(..self.left.min(BLOCK))?;
        self.left -= part.len();
        self.link = *self.next.get(at)?;
        Some(part)
    }
}
