//! Speculative decoding: the next tokens are drafted, evaluated in one step, and kept as long as they are the tokens
//! that are drawn anyway.
//!
//! A draw depends only on logits, seed and position, and the logits of a row on nothing else in its step. So every
//! token of a text is drawn as without drafts, from the same bits; a draft only lets several of these draws share a
//! step (Leviathan, Kalman and Matias, 2023, whose rule of acceptance becomes equality if draws are fixed).

use std::path::Path;

use tercet_core::model::{Row, Sampler};

use super::run::Decoder;
use super::tokenizer::Tokenizer;
use crate::Error;
use crate::engine::FlowEngine;

/// A source of draft tokens.
pub trait Drafter {
    /// Returns tokens that may follow a text: at most `most`, none if nothing is known.
    ///
    /// # Errors
    /// Those of a draft model.
    fn propose(&mut self, text: &[u32], most: usize) -> Result<Vec<u32>, Error>;
}

/// Proposes the tokens that followed an earlier occurrence of the text's last tokens: the longest match, and of equal
/// ones the last.
///
/// If that reaches the end of the text, it continues with its own proposal. O(text · longest).
///
/// ```
/// use tercet_host::language::{Drafter, Lookup};
///
/// let mut lookup = Lookup { longest: 4 };
/// assert_eq!(lookup.propose(&[1, 2, 3, 9, 2, 3], 2)?, [9, 2]);
/// assert_eq!(lookup.propose(&[5, 6, 5, 6], 3)?, [5, 6, 5]);
/// // One token alone says little.
/// assert!(lookup.propose(&[1, 2, 3, 2], 2)?.is_empty());
/// # Ok::<(), tercet_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Maximum length of the match.
    pub longest: usize,
}

impl Lookup {
    /// Minimum length of the match: most texts contain every single token before.
    const SHORTEST: usize = 2;
}

impl Drafter for Lookup {
    fn propose(&mut self, text: &[u32], most: usize) -> Result<Vec<u32>, Error> {
        let (mut best, mut longest) = (0, Self::SHORTEST - 1);
        for end in (1..text.len()).rev() {
            let before = text[..end].iter().rev();
            let same = before.zip(text.iter().rev()).take(self.longest);
            let same = same.take_while(|(a, b)| a == b).count();
            if same > longest {
                (best, longest) = (end, same);
            }
            if longest == self.longest {
                break;
            }
        }
        let mut all = text.to_vec();
        if longest >= Self::SHORTEST {
            // Within the existing tokens: `best` is before the text's end.
            all.extend((0..most).map(|_| 0));
            for index in 0..most {
                all[text.len() + index] = all[best + index];
            }
        }
        Ok(all.split_off(text.len()))
    }
}

/// A smaller model with the same vocabulary: proposes the tokens that it would write itself, with the same draws.
pub struct DraftModel<'a, 'd, 'f, E> {
    decoder: &'a mut Decoder<'d, 'f, E>,
    sampler: Sampler,
    recent: usize,
    /// The tokens in its cache.
    held: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a, 'd, 'f, E: FlowEngine> DraftModel<'a, 'd, 'f, E> {
    /// Returns a drafter with an empty sequence 0, that draws as the text is drawn.
    pub fn new(decoder: &'a mut Decoder<'d, 'f, E>, sampler: Sampler, recent: usize) -> Self {
        let scratch = vec![0; decoder.model().config().vocabulary];
        Self {
            decoder,
            sampler,
            recent,
            held: Vec::new(),
            scratch,
        }
    }
}

impl<E: FlowEngine> Drafter for DraftModel<'_, '_, '_, E> {
    /// Returns nothing once the model's context is used up.
    fn propose(&mut self, text: &[u32], most: usize) -> Result<Vec<u32>, Error> {
        let same = self.held.iter().zip(text).take_while(|(a, b)| a == b);
        let same = same.count().min(text.len().saturating_sub(1));
        let same = self.decoder.cut(0, same as u32) as usize;
        self.held.truncate(same);
        if text.len() + most > self.decoder.room() || most == 0 {
            return Ok(Vec::new());
        }
        let mut all = text.to_vec();
        let mut logits = self.decoder.prompt(0, &text[same..], &mut |_| {})?.to_vec();
        loop {
            let recent = &all[all.len() - self.recent.min(all.len())..];
            let position = all.len() as u64;
            let drawn = self
                .sampler
                .draw(&mut logits, recent, position, &mut self.scratch);
            let Some(token) = drawn else { break };
            all.push(token);
            if all.len() == text.len() + most {
                break;
            }
            let row = Row {
                token,
                sequence: 0,
                logits: true,
            };
            logits.copy_from_slice(self.decoder.step(&[row])?);
        }
        self.held.clear();
        self.held
            .extend_from_slice(&all[..self.decoder.len(0) as usize]);
        Ok(all.split_off(text.len()))
    }
}

/// Checks that two models have the same tokens, so that one can draft for the other.
///
/// # Errors
/// [`Error::Unsupported`] for the draft model's file, with the first token that differs.
pub fn same_vocabulary(
    model: &Tokenizer,
    draft: &Tokenizer,
    draft_path: &Path,
) -> Result<(), Error> {
    let (own, other) = (model.view(), draft.view());
    let count = [model, draft].map(|it| it.vocabulary().tokens());
    let text = |token: Option<&[u8]>| match token {
        Some(text) => format!("`{}`", String::from_utf8_lossy(text)),
        None => "none".to_owned(),
    };
    for id in 0..count[0].max(count[1]) {
        let (a, b) = (own.pieces().text(id), other.pieces().text(id));
        if a != b {
            let reason = format!(
                "it has another vocabulary: token {id} is {}, but {} in the model that it drafts for",
                text(b),
                text(a)
            );
            return Err(Error::unsupported(draft_path, reason));
        }
    }
    Ok(())
}

/// The length of drafts: doubled if a whole draft was right, otherwise the number of right tokens; and no drafts for
/// more and more steps while none is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    len: usize,
    /// Steps to wait without a draft, and the number after the next failure.
    wait: usize,
    patience: usize,
}

impl Pace {
    /// The longest draft: if arithmetic is the limit, further rows of a step cost as much as separate steps.
    const LONGEST: usize = 16;
    const WAIT: usize = 32;

    pub(super) const fn new() -> Self {
        Self {
            len: 4,
            wait: 0,
            patience: 1,
        }
    }

    /// Returns the number of tokens to propose for the next step.
    pub(super) fn next(&mut self) -> usize {
        if self.wait > 0 {
            self.wait -= 1;
            return 0;
        }
        self.len
    }

    /// Records the result of a draft, which was not empty.
    pub(super) fn learn(&mut self, drafted: usize, accepted: usize) {
        if accepted == 0 {
            self.len = (self.len / 2).max(1);
            if self.len == 1 {
                self.wait = self.patience;
                self.patience = (2 * self.patience).min(Self::WAIT);
            }
            return;
        }
        self.patience = 1;
        self.len = match accepted == drafted {
            true => (2 * drafted).min(Self::LONGEST),
            false => accepted + 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_grow_where_they_are_right_and_rest_where_they_are_wrong() {
        let mut pace = Pace::new();
        assert_eq!(pace.next(), 4);
        pace.learn(4, 4);
        assert_eq!(pace.next(), 8);
        pace.learn(8, 8);
        pace.learn(16, 16);
        assert_eq!(pace.next(), 16);
        pace.learn(16, 3);
        assert_eq!(pace.next(), 4);
        let mut drafts = 0;
        for _ in 0..300 {
            let len = pace.next();
            if len > 0 {
                drafts += 1;
                pace.learn(len, 0);
            }
        }
        // Two while it shortens, then after 1, 2, 4, … 32 steps without.
        assert!((12..20).contains(&drafts), "{drafts}");
        while pace.next() == 0 {}
        pace.learn(1, 1);
        assert_eq!(pace.next(), 2);
    }
}
