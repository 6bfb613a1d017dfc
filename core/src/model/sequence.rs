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
    /// Pages of positions below this one gave way in the ring.
    lost: u32,
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
            lost: 0,
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

    /// Whether there is no position for another token.
    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.limit
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
        self.lost = 0;
        self.ended = false;
    }

    /// Forgets the positions from `len` on; what follows has the bits that it would have had without them. Does nothing
    /// where there are no more. O(pages).
    ///
    /// A ring goes back only as far as the pages last that position `len` attends to: in any case by the most rows of a step
    /// from the furthest position that it had.
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
    /// [`ModelError::Overwritten`]; [`ModelError::Stopped`] for one that came to something not finite, unless `len` is 0. The sequence
    /// is then as it was.
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
        let kept = len.div_ceil(PAGE);
        if self.pattern.is_ring() {
            let oldest = self.window_of(len).max(self.fixed());
            if oldest < kept && oldest < self.lost {
                return Err(ModelError::Overwritten { position: len });
            }
        } else {
            for page in self.table.iter_mut().skip(kept as usize) {
                if *page != NONE {
                    cache.give(*page);
                }
                *page = NONE;
            }
        }
        self.len = len;
        Ok(())
    }

    /// The numbers of the pages of positions, from 0, that the next position attends to, the lowest first: all that must be kept of
    /// a sequence to go on with it, by [`Sequence::page`] and [`Cache::keys`].
    pub fn kept(&self) -> impl Iterator<Item = u32> + use<> {
        let all = self.len.div_ceil(PAGE);
        self.attended(self.len).filter(move |&page| page < all)
    }

    /// Makes room for a sequence of `len` positions of which [`Sequence::kept`] are to be given by [`Cache::load`]; what they hold
    /// until then is open. What it was is forgotten.
    ///
    /// # Errors
    /// [`ModelError::Context`] and [`ModelError::CacheFull`], with a sequence of 0; it is then empty.
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
            let full = ModelError::CacheFull { sequence: 0 };
            let taken = cache.take();
            match (self.table.get_mut(slot), taken) {
                (Some(slot), Some(page)) => *slot = page,
                _ => {
                    self.reset(cache);
                    return Err(full);
                }
            }
        }
        self.lost = if self.pattern.is_ring() {
            self.window_of(len).max(self.fixed())
        } else {
            0
        };
        Ok(())
    }

    /// The page of the first position in the window of position `p`.
    fn window_of(&self, p: u32) -> u32 {
        p.saturating_sub(self.pattern.window.saturating_sub(1)) / PAGE
    }

    /// Pages that hold the sinks and stay.
    const fn fixed(&self) -> u32 {
        self.pattern.sinks.div_ceil(PAGE)
    }

    /// The place of a page of positions in the table.
    fn slot(&self, page: u32) -> usize {
        let page = page as usize;
        if !self.pattern.is_ring() {
            return page;
        }
        let fixed = self.fixed() as usize;
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
        // There always: the table is as long as positions and window may be.
        let page = self.table.get_mut(slot).ok_or(full)?;
        if *page == NONE {
            *page = cache.take().ok_or(full)?;
        }
        if self.pattern.is_ring() {
            // The page whose slot it takes is as many before it as the ring has.
            let ring = (self.table.len() as u32).saturating_sub(self.fixed());
            let lost = (position / PAGE).saturating_add(1).saturating_sub(ring);
            self.lost = self.lost.max(lost);
        }
        Ok(())
    }

    /// What a row attends to at most.
    pub(super) const fn span(&self) -> Span {
        Span::new(self.pattern, self.context)
    }

    /// Goes on by the rows of a step.
    pub(crate) fn advance(&mut self, to: u32) {
        self.len = to;
    }

    /// The pages of positions of which `p` may attend to one: those of the sinks and those from the window's on, or all.
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
