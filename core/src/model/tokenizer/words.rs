//! A vocabulary as numbers, for the constants of a program.

use super::metadata::Span;
use super::pre::Pre;
use super::special::Specials;
use super::{Method, Scanner, Vocabulary};
use crate::gguf::ValueType;

/// No token.
const NONE: u32 = u32::MAX;

/// Names of the bits of the first word.
const SPM: u32 = 1;
const IGNORE_MERGES: u32 = 1 << 1;
const ADDS_BOS: u32 = 1 << 2;
const ADDS_EOS: u32 = 1 << 3;
const ADDS_SPACE_PREFIX: u32 = 1 << 4;
const HAS_TYPES: u32 = 1 << 5;
const HAS_SCORES: u32 = 1 << 6;
const INTEGER_SCORES: u32 = 1 << 7;
const PRE_ADDS_BOS: u32 = 1 << 8;
const PRE_HAS_BOS: u32 = 1 << 9;

const SCANNERS: [Scanner; 4] = [
    Scanner::Gpt2,
    Scanner::SmolLm,
    Scanner::Llama3,
    Scanner::Qwen2,
];

impl Vocabulary {
    /// Number of words of [`Vocabulary::words`].
    pub const WORDS: usize = 2 + 6 + 4 * 3 + 1 + 2 * Specials::WORDS;

    /// Returns the vocabulary as numbers, from which [`Vocabulary::from_words`] makes it again: for a program that is
    /// built for one file, and then needs no code that reads its metadata.
    pub fn words(&self) -> [u32; Self::WORDS] {
        let small = |number: usize| u32::try_from(number).unwrap_or(NONE);
        let span = |span: Span| span.parts().map(small);
        let flags = [
            (SPM, self.method == Method::Spm),
            (IGNORE_MERGES, self.pre.ignore_merges),
            (ADDS_BOS, self.adds_bos),
            (ADDS_EOS, self.adds_eos),
            (ADDS_SPACE_PREFIX, self.adds_space_prefix),
            (HAS_TYPES, self.types.is_some()),
            (PRE_ADDS_BOS, self.pre.adds_bos),
            (PRE_HAS_BOS, self.pre.has_bos),
            (HAS_SCORES, self.scores.is_some()),
            (
                INTEGER_SCORES,
                matches!(self.scores, Some((_, ValueType::I32))),
            ),
        ];
        let flags = flags.iter().filter(|(_, set)| *set);
        let scanner = SCANNERS.iter().position(|&one| one == self.pre.scanner);
        let ids = [
            self.bos,
            self.eos,
            self.eot,
            self.eom,
            self.unknown,
            self.padding,
        ];
        let scores = self.scores.map(|(span, _)| span);
        let all = [flags.map(|(bit, _)| bit).sum(), small(scanner.unwrap_or(0))]
            .into_iter()
            .chain(ids.map(|id| id.unwrap_or(NONE)))
            .chain(span(self.tokens))
            .chain(span(self.types.unwrap_or_default()))
            .chain(span(scores.unwrap_or_default()))
            .chain(span(self.merges))
            .chain([small(self.longest)])
            .chain(self.defined.words())
            .chain(self.special.words());
        let mut words = [0; Self::WORDS];
        for (word, number) in words.iter_mut().zip(all) {
            *word = number;
        }
        words
    }

    /// Returns the vocabulary with these [`Vocabulary::words`], for the same file. With other numbers, or for another
    /// file, texts and tokens are unspecified. O(1).
    ///
    /// ```
    /// use tercet_core::gguf::Reader;
    /// use tercet_core::model::tokenizer::Vocabulary;
    ///
    /// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/models/ternary.gguf"));
    /// let vocabulary = Vocabulary::new(&Reader::new(file)?, file)?;
    /// assert_eq!(Vocabulary::from_words(&vocabulary.words()), vocabulary);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // A separate stack frame; otherwise a program's main loop would keep all of it.
    #[inline(never)]
    pub fn from_words(words: &[u32; Self::WORDS]) -> Self {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let flags = next();
        let has = |flag| flags & flag != 0;
        let scanner = SCANNERS.get(next() as usize).copied();
        let [bos, eos, eot, eom, unknown, padding] =
            [(); 6].map(|()| Some(next()).filter(|&id| id != NONE));
        let [tokens, types, scores, merges] =
            [(); 4].map(|()| Span::from_parts([(); 3].map(|()| next() as usize)));
        let kind = match has(INTEGER_SCORES) {
            true => ValueType::I32,
            false => ValueType::F32,
        };
        Self {
            method: if has(SPM) { Method::Spm } else { Method::Bpe },
            pre: Pre {
                scanner: scanner.unwrap_or(Scanner::Gpt2),
                ignore_merges: has(IGNORE_MERGES),
                adds_bos: has(PRE_ADDS_BOS),
                has_bos: has(PRE_HAS_BOS),
            },
            adds_bos: has(ADDS_BOS),
            adds_eos: has(ADDS_EOS),
            adds_space_prefix: has(ADDS_SPACE_PREFIX),
            bos,
            eos,
            eot,
            eom,
            unknown,
            padding,
            tokens,
            types: has(HAS_TYPES).then_some(types),
            scores: has(HAS_SCORES).then_some((scores, kind)),
            merges,
            longest: next() as usize,
            defined: Specials::from_words(&mut next),
            special: Specials::from_words(&mut next),
        }
    }
}
