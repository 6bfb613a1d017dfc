//! Merges neighbours, the best pair first, in the caller's memory. SPM and byte-level BPE share this code.
//!
//! A pair's key belongs to its left symbol. Of n keys, the smallest, and of equal ones the leftmost, is the root of a
//! tournament tree, whose nodes hold the winner of their two children. A merge changes three keys, and each climbs at
//! most log₂ n nodes. So a piece of n symbols takes O(n log n), with five words of memory per symbol.

/// Words of scratch per symbol.
pub(super) const WORDS: usize = 5;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The key of a pair that does not merge.
pub(super) const NEVER: u32 = u32::MAX;

/// Up to this number of symbols, the smallest key is searched for, without a tree: most pieces are words.
const FEW: usize = 24;

/// Rules of merging.
///
/// A symbol is one number to these rules. `after` is the symbol that follows the pair, or the end passed to
/// [`Symbols::merge`].
pub(super) trait Rules {
    /// Returns the key of a pair, of which the smallest merges first, or [`NEVER`].
    fn key(&self, left: u32, right: u32, after: u32) -> u32;

    /// Returns the symbol that a pair becomes, from its left symbol and its key.
    fn merged(&self, left: u32, key: u32) -> u32;
}

/// A sequence of symbols.
#[derive(Debug)]
pub(super) struct Symbols<'s> {
    symbols: &'s mut [u32],
    previous: &'s mut [u32],
    next: &'s mut [u32],
    keys: &'s mut [u32],
    /// The winner of each inner node, from 1 on. The leaves, which follow them, are the symbols.
    winners: &'s mut [u32],
    len: usize,
}

impl<'s> Symbols<'s> {
    /// Creates an empty sequence, with space for as many symbols as `scratch` holds.
    pub(super) fn new(scratch: &'s mut [u32]) -> Self {
        let each = scratch.len() / WORDS;
        let mut parts = scratch.chunks_exact_mut(each.max(1));
        let mut part = || parts.next().unwrap_or_default();
        Self {
            symbols: part(),
            previous: part(),
            next: part(),
            keys: part(),
            winners: part(),
            len: 0,
        }
    }

    /// Returns the largest number of symbols.
    pub(super) fn capacity(&self) -> usize {
        self.winners.len()
    }

    pub(super) const fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a symbol at the end; `false` if there is no space.
    #[inline]
    pub(super) fn push(&mut self, symbol: u32) -> bool {
        let room = self.len < self.capacity();
        if room && let Some(slot) = self.symbols.get_mut(self.len) {
            *slot = symbol;
            self.len = self.len.saturating_add(1);
        }
        room
    }

    /// Returns the symbol at `at`, and the place of the next one.
    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<(u32, Option<u32>)> {
        let symbol = *self.symbols.get(at as usize)?;
        let next = *self.next.get(at as usize)?;
        Some((symbol, Some(next).filter(|&next| next != NONE)))
    }

    /// Returns the place of the first symbol, if there is one.
    pub(super) fn first(&self) -> Option<u32> {
        (self.len > 0).then_some(0)
    }

    fn symbol(&self, at: u32) -> Option<u32> {
        self.symbols.get(at as usize).copied()
    }

    fn key(&self, at: usize) -> u32 {
        self.keys.get(at).copied().unwrap_or(NEVER)
    }

    /// Merges pairs of the pushed symbols until none has a key.
    pub(super) fn merge<R: Rules>(&mut self, rules: &R, end: u32) {
        self.link();
        for left in 0..self.len as u32 {
            self.rate(rules, left, end);
        }
        let tree = self.len > FEW;
        if tree {
            for node in (1..self.len).rev() {
                self.play(node);
            }
        }
        while let Some(left) = self.best(tree) {
            self.join(rules, left, end, tree);
        }
    }

    /// Links the symbols to a sequence.
    fn link(&mut self) {
        let links = self.previous.iter_mut().zip(self.next.iter_mut());
        for (at, (previous, next)) in (0..self.len as u32).zip(links) {
            // The first has `NONE` before it.
            *previous = at.wrapping_sub(1);
            *next = at.wrapping_add(1);
        }
        if let Some(last) = self
            .len
            .checked_sub(1)
            .and_then(|last| self.next.get_mut(last))
        {
            *last = NONE;
        }
    }

    /// Sets the key of the pair that begins with `left`.
    #[inline]
    fn rate<R: Rules>(&mut self, rules: &R, left: u32, end: u32) {
        let pair = self.get(left).and_then(|(symbol, right)| {
            let (right, after) = self.get(right?)?;
            let after = after.and_then(|after| self.symbol(after)).unwrap_or(end);
            Some((symbol, right, after))
        });
        let key = pair.map_or(NEVER, |(left, right, after)| rules.key(left, right, after));
        if let Some(slot) = self.keys.get_mut(left as usize) {
            *slot = key;
        }
    }

    /// Returns the symbol whose pair merges next.
    fn best(&self, tree: bool) -> Option<u32> {
        if tree {
            let winner = *self.winners.get(1)?;
            return (self.key(winner as usize) != NEVER).then_some(winner);
        }
        let keys = self.keys.get(..self.len).unwrap_or_default();
        let mut best = (NEVER, None);
        for (at, &key) in (0..).zip(keys) {
            if key < best.0 {
                best = (key, Some(at));
            }
        }
        best.1
    }

    /// Merges the pair that begins with `left`.
    fn join<R: Rules>(&mut self, rules: &R, left: u32, end: u32, tree: bool) {
        let key = self.key(left as usize);
        let Some((symbol, Some(right))) = self.get(left) else {
            return;
        };
        let after = self.next.get(right as usize).copied().unwrap_or(NONE);
        if let Some(slot) = self.symbols.get_mut(left as usize) {
            *slot = rules.merged(symbol, key);
        }
        if let Some(slot) = self.next.get_mut(left as usize) {
            *slot = after;
        }
        if let Some(slot) = self.previous.get_mut(after as usize) {
            *slot = left;
        }
        if let Some(slot) = self.keys.get_mut(right as usize) {
            *slot = NEVER;
        }
        self.rate(rules, left, end);
        let before = self.previous.get(left as usize).copied().unwrap_or(NONE);
        if before != NONE {
            self.rate(rules, before, end);
        }
        if tree {
            for changed in [right, left, before] {
                if changed != NONE {
                    self.climb(changed);
                }
            }
        }
    }

    /// Returns the winner below a place of the tree.
    fn winner(&self, place: usize) -> u32 {
        match place.checked_sub(self.len) {
            Some(leaf) => leaf as u32,
            None => self.winners.get(place).copied().unwrap_or(0),
        }
    }

    /// Compares the children of a node. Returns true if the winner changed.
    fn play(&mut self, node: usize) -> bool {
        let left = self.winner(node.saturating_mul(2));
        let right = self.winner(node.saturating_mul(2).saturating_add(1));
        // At the place where the sequence's ends meet in the tree, the right child may be further left.
        let rank = |symbol: u32| (self.key(symbol as usize), symbol);
        let won = if rank(right) < rank(left) {
            right
        } else {
            left
        };
        match self.winners.get_mut(node) {
            Some(slot) => core::mem::replace(slot, won) != won,
            None => false,
        }
    }

    /// Repeats the comparisons from a symbol whose key changed up to the root.
    fn climb(&mut self, symbol: u32) {
        let mut node = (symbol as usize).saturating_add(self.len) / 2;
        while node > 0 {
            let changed = self.play(node);
            // Above a node that another symbol keeps, nothing changes.
            if !changed && self.winner(node) != symbol {
                break;
            }
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Numbers that merge to their sum while it is below a limit, with a key that many pairs share, or few.
    struct Sums {
        limit: u32,
        keys: u32,
    }

    impl Rules for Sums {
        fn key(&self, left: u32, right: u32, _: u32) -> u32 {
            match left + right {
                sum if sum < self.limit => (left * 7 + right * 3) % self.keys * 1000 + sum,
                _ => NEVER,
            }
        }

        fn merged(&self, left: u32, key: u32) -> u32 {
            assert!(key % 1000 > left);
            key % 1000
        }
    }

    fn slowly(rules: &Sums, mut row: Vec<u32>) -> Vec<u32> {
        loop {
            let keys = row.windows(2).map(|pair| rules.key(pair[0], pair[1], 0));
            let Some((key, at)) = keys.zip(0..).min().filter(|(key, _)| *key != NEVER) else {
                return row;
            };
            row[at] = rules.merged(row[at], key);
            row.remove(at + 1);
        }
    }

    #[test]
    fn merges_are_those_of_looking_for_the_best_pair_each_time() {
        let mut state = 1u32;
        let mut number = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..400 {
            let len = 1 + number(if round % 4 == 0 { 400 } else { 60 });
            let rules = Sums {
                limit: 2 + number(60),
                keys: 1 + number(9),
            };
            let row: Vec<u32> = (0..len).map(|_| 1 + number(5)).collect();
            let mut scratch = vec![0; row.len() * WORDS];
            let mut symbols = Symbols::new(&mut scratch);
            assert!(row.iter().all(|&symbol| symbols.push(symbol)) && !symbols.push(0));
            symbols.merge(&rules, 0);
            let (mut merged, mut at) = (Vec::new(), symbols.first());
            while let Some((symbol, next)) = at.and_then(|at| symbols.get(at)) {
                merged.push(symbol);
                at = next;
            }
            assert_eq!(merged, slowly(&rules, row));
        }
    }

    #[test]
    fn scratch_too_small_for_a_symbol_holds_none() {
        let mut scratch = [0; WORDS - 1];
        let mut symbols = Symbols::new(&mut scratch);
        assert!(!symbols.push(1));
        symbols.merge(&Sums { limit: 9, keys: 1 }, 0);
        assert_eq!((symbols.first(), symbols.capacity()), (None, 0));
    }
}
