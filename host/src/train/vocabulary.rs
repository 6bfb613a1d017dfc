//! A vocabulary made from a text: byte-pair encoding (Sennrich and others, *Neural Machine Translation of Rare Words
//! with Subword Units*, 2016).
//!
//! It is our own code and not a library's, because its merges decide the hash of a model's file: they depend only on
//! the text, and every tie is defined.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use tercet_core::model::tokenizer::Scanner;

use crate::language::Vocabulary;

/// A pair of neighbours.
type Pair = (u32, u32);

/// A piece of text as tokens, and its number of occurrences.
struct Word {
    tokens: Vec<u32>,
    count: u64,
}

/// Returns a vocabulary of at most `tokens` tokens for a text: bytes and three controls, then the tokens that the most
/// frequent pairs merge into, one after another. Of equally frequent pairs the one with the lowest tokens is first.
/// Pairs that occur once are not merged. O(text + merges · places of a pair).
///
/// ```
/// use tercet_host::train::vocabulary;
///
/// let found = vocabulary(b"low lower lowest", 262);
/// assert_eq!(found.tokens[259..], ["lo", "low", "\u{120}low"]);
/// ```
pub fn vocabulary(text: &[u8], tokens: u32) -> Vocabulary {
    let first = Vocabulary::bytes().tokens.len() as u32;
    let mut counts: BTreeMap<&[u8], u64> = BTreeMap::new();
    for piece in Scanner::Gpt2.pieces(text) {
        *counts.entry(piece).or_default() += 1;
    }
    let words = counts.into_iter().map(|(piece, count)| Word {
        tokens: piece.iter().map(|&byte| byte.into()).collect(),
        count,
    });
    let mut pairs = Pairs::new(words.collect());
    // The bytes of each token, because two different merges can give the same text.
    let mut texts: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    texts.resize(first as usize, Vec::new());
    let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut merges = Vec::new();
    while (texts.len() as u32) < tokens {
        let Some(pair) = pairs.most() else { break };
        let text = [&texts[pair.0 as usize][..], &texts[pair.1 as usize]].concat();
        let next = texts.len() as u32;
        let token = *known.entry(text.clone()).or_insert(next);
        if token == next {
            texts.push(text);
        }
        merges.push(pair);
        pairs.merge(pair, token);
    }
    Vocabulary::merged(&merges)
}

/// All pairs of neighbours: how often they occur and in which words.
struct Pairs {
    words: Vec<Word>,
    counts: HashMap<Pair, u64>,
    places: HashMap<Pair, Vec<usize>>,
    /// Counts at some earlier time; an outdated one is replaced by the current one.
    heap: BinaryHeap<(u64, Reverse<Pair>)>,
}

impl Pairs {
    fn new(words: Vec<Word>) -> Self {
        let mut pairs = Self {
            words,
            counts: HashMap::new(),
            places: HashMap::new(),
            heap: BinaryHeap::new(),
        };
        for index in 0..pairs.words.len() {
            pairs.count(index, true);
        }
        pairs.heap = pairs
            .counts
            .iter()
            .map(|(&pair, &count)| (count, Reverse(pair)))
            .collect();
        pairs
    }

    /// Returns the most frequent pair, if it occurs at least twice.
    fn most(&mut self) -> Option<Pair> {
        while let Some((count, Reverse(pair))) = self.heap.pop() {
            let now = self.counts.get(&pair).copied().unwrap_or(0);
            if now == count {
                return (count > 1).then_some(pair);
            }
            if now > 0 {
                self.heap.push((now, Reverse(pair)));
            }
        }
        None
    }

    /// Adds or removes a word's pairs.
    fn count(&mut self, index: usize, adds: bool) {
        let word = &self.words[index];
        for pair in word.tokens.windows(2) {
            let pair = (pair[0], pair[1]);
            let count = self.counts.entry(pair).or_default();
            if adds {
                *count += word.count;
                let places = self.places.entry(pair).or_default();
                if places.last() != Some(&index) {
                    places.push(index);
                }
            } else {
                *count -= word.count;
            }
        }
    }

    /// Replaces a pair by a token, from the left of each word on.
    fn merge(&mut self, pair: Pair, token: u32) {
        let mut places = self.places.remove(&pair).unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        for index in places {
            self.count(index, false);
            let word = &mut self.words[index].tokens;
            let (mut from, mut to) = (0, 0);
            while from < word.len() {
                let both = word.get(from..from + 2) == Some(&[pair.0, pair.1]);
                word[to] = if both { token } else { word[from] };
                from += if both { 2 } else { 1 };
                to += 1;
            }
            word.truncate(to);
            self.count(index, true);
            let neighbours = self.words[index].tokens.windows(2);
            for pair in neighbours.filter(|pair| pair.contains(&token)) {
                let pair = (pair[0], pair[1]);
                self.heap.push((self.counts[&pair], Reverse(pair)));
            }
        }
        self.counts.remove(&pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the same by counting everything again for each merge.
    fn plain(text: &[u8], tokens: usize) -> Vec<(u32, u32)> {
        let mut words: Vec<Vec<u32>> = Scanner::Gpt2
            .pieces(text)
            .map(|piece| piece.iter().map(|&byte| byte.into()).collect())
            .collect();
        let mut merges = Vec::new();
        let mut next = 259;
        while merges.len() < tokens {
            let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for word in &words {
                for pair in word.windows(2) {
                    *counts.entry((pair[0], pair[1])).or_default() += 1;
                }
            }
            let most = counts
                .iter()
                .max_by_key(|&(&pair, &count)| (count, Reverse(pair)));
            let Some((&pair, _)) = most.filter(|&(_, &count)| count > 1) else {
                break;
            };
            for word in &mut words {
                let mut merged = Vec::new();
                let mut at = 0;
                while at < word.len() {
                    if word.get(at..at + 2) == Some(&[pair.0, pair.1]) {
                        merged.push(next);
                        at += 2;
                    } else {
                        merged.push(word[at]);
                        at += 1;
                    }
                }
                *word = merged;
            }
            merges.push(pair);
            next += 1;
        }
        merges
    }

    #[test]
    fn merges_are_those_of_counting_anew() {
        let text =
            b"the cat sat on the mat; the other cats sat there, as the rest did. aaaa aaa aaaaaa";
        let found = vocabulary(text, 259 + 40);
        let expected = Vocabulary::merged(&plain(text, 40));
        assert_eq!(found.merging, expected.merging);
    }

    #[test]
    fn a_text_without_pairs_has_bytes_alone() {
        assert_eq!(vocabulary(b"", 1000).tokens.len(), 259);
        assert_eq!(vocabulary(b"ab", 1000).tokens.len(), 259);
    }
}
