//! A sequence of tokens and where its keys and values lie.

use super::cache::{Cache, PAGE};
use super::memory::Span;
use super::{CacheType, ModelError, Pattern};

/// No page.
const NONE: u32 = u32::MAX;

/// The pages of one sequence, and how far it is.
///
/// With a window and no stride its pages are a ring: those of the sinks stay, and of the others the oldest gives way,
/// so that it may be of any length in constant memory.
#[derive(Debug)]
pub struct Sequence<'m> {
    pattern: Pattern,
    /// Pages by place; [`NONE`] where there is none yet.
    table: &'m mut [u32],
    context: u32,
    len: u32,
    /// The most positions; those of the sinks and the window do not count for a ring.
    limit: u32,
    /// The most rows in one step.
    chunk: u32,
    pub(super) ended: bool,
}

impl<'m> Sequence<'m> {
    /// Pages that a sequence takes at most: for all of `context` positions, or, of a ring, for sinks, window and a step of `chunk` rows.
    ///
    /// ```
    /// use tercet_core::model::{Pattern, Sequence};
    ///
    /// assert_eq!(Sequence::pages(Pattern::FULL, 256, 16), 4);
    /// let ring = Pattern { window: 128, sinks: 4, stride: 0 };
    /// // One of the sinks, and four of which any window and step touch at most four.
    /// assert_eq!(Sequence::pages(ring, 256, 16), 5);
    /// ```
    pub const fn pages(pattern: Pattern, context: u32, chunk: u32) -> usize {
        let full = context.div_ceil(PAGE) as usize;
        if !pattern.is_ring() {
            return full;
        }
        // From the first row's oldest position to the last row, wherever in a page they fall.
        let span = pattern.window.saturating_add(chunk).saturating_sub(2);
        let sinks = pattern.sinks.div_ceil(PAGE) as usize;
        sinks
            .saturating_add((span / PAGE) as usize)
            .saturating_add(2)
    }

    /// An empty sequence with a table of [`Sequence::pages`] for that pattern, `context` and `chunk`, whatever it holds.
    ///
    /// # Errors
    /// [`ModelError::Room`] for a table of fewer; [`ModelError::CacheRange`] for more positions than a cache of that type takes.
    pub fn new(
        pattern: Pattern,
        kind: CacheType,
        context: u32,
        chunk: u32,
        table: &'m mut [u32],
    ) -> Result<Self, ModelError> {
        let needed = Self::pages(pattern, context, chunk);
        let found = table.len();
        let positions = kind.max_positions();
        let attended = match pattern.is_ring() {
            true => pattern
                .window
                .saturating_add(pattern.sinks)
                .saturating_add(2 * PAGE),
            false => context,
        };
        if attended > positions {
            return Err(ModelError::CacheRange { positions });
        }
        let table = table.get_mut(..needed).ok_or(ModelError::Room {
            memory: "a sequence's table of pages",
            needed,
            found,
        })?;
        table.fill(NONE);
        Ok(Self {
            pattern,
            table,
            context,
            len: 0,
            limit: if pattern.is_ring() { u32::MAX } else { context },
            chunk,
            ended: false,
        })
    }

    /// Positions so far.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no position yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is attended to.
    pub const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Gives all pages back and forgets every position, and that something was not finite.
    pub fn reset(&mut self, cache: &mut Cache<'_>) {
        for page in self.table.iter_mut() {
            if *page != NONE {
                cache.give(*page);
            }
            *page = NONE;
        }
        self.len = 0;
        self.ended = false;
    }

    /// The place of a page of positions in the table.
    fn slot(&self, page: u32) -> usize {
        let page = page as usize;
        if !self.pattern.is_ring() {
            return page;
        }
        let fixed = self.pattern.sinks.div_ceil(PAGE) as usize;
        let ring = self.table.len().saturating_sub(fixed);
        match page
            .checked_sub(fixed)
            .and_then(|page| page.checked_rem(ring))
        {
            Some(turn) => fixed.saturating_add(turn),
            None => page,
        }
    }

    /// Where in the cache the page of a position lies; `None` for one that was never kept.
    pub fn page(&self, position: u32) -> Option<u32> {
        let page = self.table.get(self.slot(position / PAGE)).copied();
        page.filter(|&page| page != NONE)
    }

    /// Makes room for a position, the first behind those that room was made for.
    pub(super) fn extend(
        &mut self,
        index: usize,
        position: u32,
        cache: &mut Cache<'_>,
    ) -> Result<(), ModelError> {
        if position >= self.limit {
            return Err(ModelError::Context {
                sequence: index,
                positions: self.limit,
            });
        }
        if position.wrapping_sub(self.len) >= self.chunk {
            return Err(ModelError::Chunk {
                sequence: index,
                rows: self.chunk,
            });
        }
        let slot = self.slot(position / PAGE);
        let full = ModelError::CacheFull { sequence: index };
        // There always: the table is as long as positions and window may be.
        let page = self.table.get_mut(slot).ok_or(full)?;
        if *page == NONE {
            *page = cache.take().ok_or(full)?;
        }
        Ok(())
    }

    /// What a row attends to at most.
    pub(super) const fn span(&self) -> Span {
        Span::new(self.pattern, self.context)
    }

    /// Goes on by the rows of a step.
    pub(super) fn advance(&mut self, to: u32) {
        self.len = to;
    }

    /// The pages of positions of which `p` may attend to one: those of the sinks and those from the window's on, or all.
    pub(super) fn attended(&self, p: u32) -> impl Iterator<Item = u32> + use<> {
        let last = p / PAGE;
        let (sinks, first) = match self.pattern.stride {
            0 => {
                let first = p.saturating_sub(self.pattern.window.saturating_sub(1)) / PAGE;
                (self.pattern.sinks.div_ceil(PAGE).min(first), first)
            }
            _ => (0, 0),
        };
        (0..sinks).chain(first..last.saturating_add(1))
    }
}
