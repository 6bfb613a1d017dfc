//! Indices as links of lists.

/// The index of a block, or none. None is zero, so that empty lists are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u16);

impl Link {
    pub(super) const NONE: Self = Self(0);
    /// Number of possible indices.
    pub(super) const MAX: usize = u16::MAX as usize;

    /// Returns a link to `index`, below [`Link::MAX`].
    #[inline]
    pub(super) const fn to(index: usize) -> Self {
        Self((index + 1) as u16)
    }

    /// Returns the index.
    #[inline]
    pub(super) const fn get(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}
