//! A sequence of tokens and the pages of its keys and values.

use super::cache::{Cache, PAGE};
use super::memory::Span;
use super::{CacheType, ModelError, Pattern};

/// No page.
const NONE: u32 = u32::MAX;

/// The pages of one sequence, and its length.
///
/// With a window and no stride, the pages form a ring: the sinks' pages stay, and of the others the oldest position is
/// overwritten. So the sequence may have any length in constant memory. The first and the last page of a window may then
/// share memory: each of its positions belongs to one of them.
#[derive(Debug)]
pub struct Sequence<'m> {
    pattern: Pattern,
    /// Pages by place; [`NONE`] if there is none yet.
    table: &'m mut [u32],
    context: u32,
    len: u32,
    /// Largest number of positions; for a ring, sinks and window do not limit it.
    limit: u32,
    /// Largest number of rows in one step.
    chunk: u32,
    /// The ring has overwritten positions before this one, except the sinks' pages.
    lost: u32,
    pub(super) ended: bool,
}

impl<'m> Sequence<'m> {
    /// Returns the largest number of pages of a sequence: for all of `context` positions, or, for a ring, for sinks,
    /// window and a step of `chunk` rows.
    ///
    /// ```
    /// use tercet_core::model::{Pattern, Sequence};
    ///
    /// assert_eq!(Sequence::pages(Pattern::FULL, 256, 16), 4);
    /// let ring = Pattern { window: 128, sinks: 4, stride: 0 };
    /// // One of the sinks, and three for the 143 positions of a window and a step.
    /// assert_eq!(Sequence::pages(ring, 256, 16), 4);
    /// ```
    pub const fn pages(pattern: Pattern, context: u32, chunk: u32) -> usize {
        let full = context.div_ceil(PAGE) as usize;
        if !pattern.is_ring() {
            return full;
        }
        // From the first row's oldest position to the last row.
        let span = pattern.window.saturating_add(chunk).saturating_sub(1);
        let span = if span == 0 { 1 } else { span };
        (pattern.sinks.div_ceil(PAGE) as usize).saturating_add(span.div_ceil(PAGE) as usize)
    }

    /// Returns the largest number of pages, counted in positions, that a position attends to. It may be one more than
    /// those in memory.
    pub const fn attended_pages(pattern: Pattern, context: u32) -> usize {
        if !pattern.is_ring() {
            return context.div_ceil(PAGE) as usize;
        }
        // The window's oldest position at any place in a page.
        let window = pattern.window.saturating_sub(1).div_ceil(PAGE) as usize;
        (pattern.sinks.div_ceil(PAGE) as usize)
            .saturating_add(window)
            .saturating_add(1)
    }

    /// Creates an empty sequence. The table has [`Sequence::pages`] elements for that pattern, `context` and `chunk`;
    /// its content does not matter.
    ///
    /// # Errors
    /// [`ModelError::Room`] for a shorter table; [`ModelError::CacheRange`] for more positions than a cache of that
    /// type allows.
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
            lost: 0,
            ended: false,
        })
    }

    /// Returns the number of positions so far.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns true if there is no position yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if there is no position for another token.
    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    /// Returns the pattern of attended positions.
    pub const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns all pages to the cache and drops every position, and the mark that a value was not finite.
    pub fn reset(&mut self, cache: &mut Cache<'_>) {
        for page in self.table.iter_mut() {
            if *page != NONE {
                cache.give(*page);
            }
            *page = NONE;
        }
        self.len = 0;
        self.lost = 0;
        self.ended = false;
    }

    /// Drops the positions from `len` on. The following steps return the same bits as if these positions had never
    /// existed. Does nothing if the sequence is not longer. O(pages).
    ///
    /// A ring can only go back as far as it still has the pages that position `len` attends to: always by the largest
    /// number of rows of a step from the furthest position that it had.
    ///
    /// ```
    /// # use tercet_core::model::{Cache, CacheShape, CacheType, Codes, Pattern, Sequence};
    /// let shape = CacheShape { kind: CacheType::Int8, layers: 1, heads: 1, head: 2 };
    /// let (mut keys, mut values, mut scales) = ([0; 256], [0; 256], [0.0; 256]);
    /// let (mut free, mut table) = ([0; 2], [0; 2]);
    /// let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
    /// let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free)?;
    /// let mut sequence = Sequence::new(Pattern::FULL, CacheType::Int8, 128, 1, &mut table)?;
    /// sequence.restore(65, &mut cache)?; // As if a model had taken 65 tokens in.
    /// assert_eq!(cache.pages(), (2, 0));
    /// sequence.truncate(64, &mut cache)?;
    /// assert_eq!((sequence.len(), cache.pages()), (64, (2, 1)));
    /// # Ok::<(), tercet_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::Overwritten`]; [`ModelError::Stopped`] for a sequence that had a value that was not finite,
    /// unless `len` is 0. The sequence is then unchanged.
    pub fn truncate(&mut self, len: u32, cache: &mut Cache<'_>) -> Result<(), ModelError> {
        if len == 0 {
            self.reset(cache);
            return Ok(());
        }
        if len >= self.len {
            return Ok(());
        }
        if self.ended {
            return Err(ModelError::Stopped);
        }
        if self.pattern.is_ring() {
            let oldest = self.oldest(len).max(self.fixed().saturating_mul(PAGE));
            if oldest < len && oldest < self.lost {
                return Err(ModelError::Overwritten { position: len });
            }
        } else {
            for page in self.table.iter_mut().skip(len.div_ceil(PAGE) as usize) {
                if *page != NONE {
                    cache.give(*page);
                }
                *page = NONE;
            }
        }
        self.len = len;
        Ok(())
    }

    /// Returns the page numbers (counted in positions, from 0) that the next position attends to, lowest first. To
    /// continue a sequence later, it is enough to store these pages, by [`Sequence::page`] and [`Cache::keys`].
    pub fn kept(&self) -> impl Iterator<Item = u32> + use<> {
        let all = self.len.div_ceil(PAGE);
        self.attended(self.len).filter(move |&page| page < all)
    }

    /// Drops the current content and takes pages for a sequence of `len` positions. The caller then fills the pages
    /// of [`Sequence::kept`] with [`Cache::load`]; until then their content is unspecified.
    ///
    /// # Errors
    /// [`ModelError::Context`] and [`ModelError::CacheFull`], with a sequence of 0. The sequence is then empty.
    pub fn restore(&mut self, len: u32, cache: &mut Cache<'_>) -> Result<(), ModelError> {
        self.reset(cache);
        if len > self.limit {
            return Err(ModelError::Context {
                sequence: 0,
                positions: self.limit,
            });
        }
        self.len = len;
        for page in self.kept() {
            let slot = self.slot(page);
            match self.table.get_mut(slot) {
                // The window's first and last page share it.
                Some(&mut page) if page != NONE => {}
                slot => match (slot, cache.take()) {
                    (Some(slot), Some(page)) => *slot = page,
                    _ => {
                        self.reset(cache);
                        return Err(ModelError::CacheFull { sequence: 0 });
                    }
                },
            }
        }
        self.lost = if self.pattern.is_ring() {
            // Of positions before the window no more is filled than the rest of their page.
            let first = self.window_of(len).saturating_mul(PAGE);
            first.max(len.saturating_sub(self.ring().saturating_mul(PAGE)))
        } else {
            0
        };
        Ok(())
    }

    /// Returns the first position in the window of position `p`.
    fn oldest(&self, p: u32) -> u32 {
        p.saturating_sub(self.pattern.window.saturating_sub(1))
    }

    /// Returns the page number of the first position in the window of position `p`.
    fn window_of(&self, p: u32) -> u32 {
        self.oldest(p) / PAGE
    }

    /// Returns the number of pages that hold the sinks and stay.
    const fn fixed(&self) -> u32 {
        self.pattern.sinks.div_ceil(PAGE)
    }

    /// Returns the number of pages of the ring.
    const fn ring(&self) -> u32 {
        (self.table.len() as u32).saturating_sub(self.fixed())
    }

    /// Returns the place of a page number in the table.
    fn slot(&self, page: u32) -> usize {
        if !self.pattern.is_ring() {
            return page as usize;
        }
        let fixed = self.fixed();
        let turn = page.checked_sub(fixed);
        match turn.and_then(|page| page.checked_rem(self.ring())) {
            Some(turn) => fixed.saturating_add(turn) as usize,
            None => page as usize,
        }
    }

    /// Returns the cache's page of a position; `None` if the position was never stored.
    pub fn page(&self, position: u32) -> Option<u32> {
        let page = self.table.get(self.slot(position / PAGE)).copied();
        page.filter(|&page| page != NONE)
    }

    /// Takes space for a position, the first one after those that have space.
    pub(crate) fn extend(
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
        // Always present: the table is long enough for all positions, or for the window.
        let page = self.table.get_mut(slot).ok_or(full)?;
        if *page == NONE {
            *page = cache.take().ok_or(full)?;
        }
        if self.pattern.is_ring() {
            // It overwrites the position that is as many pages before it as the ring has.
            let lost = position.saturating_add(1);
            let lost = lost.saturating_sub(self.ring().saturating_mul(PAGE));
            self.lost = self.lost.max(lost);
        }
        Ok(())
    }

    /// Returns the largest number of positions that a row attends to.
    pub(super) const fn span(&self) -> Span {
        Span::new(self.pattern, self.context)
    }

    /// Advances by the rows of a step.
    pub(crate) fn advance(&mut self, to: u32) {
        self.len = to;
    }

    /// Returns the page numbers with positions that `p` may attend to: those of the sinks and those from the window's
    /// on, or all.
    pub(super) fn attended(&self, p: u32) -> impl Iterator<Item = u32> + use<> {
        let last = p / PAGE;
        let (sinks, first) = match self.pattern.stride {
            0 => {
                let first = self.window_of(p);
                (self.fixed().min(first), first)
            }
            _ => (0, 0),
        };
        (0..sinks).chain(first..last.saturating_add(1))
    }
}
