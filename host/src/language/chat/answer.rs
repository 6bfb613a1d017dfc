//! An answer: a prompt of which the cache holds the beginning, continued.

use std::time::Duration;

use crate::Error;
use crate::engine::FlowEngine;
use crate::language::run::Decoder;
use crate::language::{Drafter, Generated, Generation, generate};

/// What a sequence of a cache holds: the tokens that were taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    tokens: Vec<u32>,
}

/// What came of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// What was drawn; its digest is of this answer's logits, its prompt's time that of tokens which were not held.
    pub generated: Generated,
    /// Tokens of the prompt that the cache held.
    pub cached: usize,
    /// Whether it was stopped.
    pub stopped: bool,
}

impl Held {
    /// What a cache that was put back holds.
    pub(super) fn of(tokens: Vec<u32>) -> Self {
        Self { tokens }
    }

    /// The tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Continues a prompt in sequence 0. As many of its first tokens as the cache holds are not taken in again; what it holds behind
    /// them is forgotten, and so are all where a window's ring has overwritten what they attend to. The answer's bits do not depend on it.
    ///
    /// `stops` is asked between steps; `each` gets every token and says whether to go on.
    ///
    /// # Errors
    /// Those of [`generate`]. What was taken in stays held.
    pub fn answer<E: FlowEngine>(
        &mut self,
        decoder: &mut Decoder<'_, '_, E>,
        prompt: &[u32],
        how: &Generation<'_>,
        drafter: Option<&mut dyn Drafter>,
        stops: &dyn Fn() -> bool,
        each: &mut dyn FnMut(u32) -> Result<bool, Error>,
    ) -> Result<Answer, Error> {
        let same = self.tokens.iter().zip(prompt);
        let same = same.take_while(|(held, asked)| held == asked).count();
        // The last token's logits are to be had.
        let same = same.min(prompt.len().saturating_sub(1));
        let cached = decoder.cut(0, same as u32) as usize;
        let mut text = prompt.to_vec();
        let mut stopped = false;
        let done = take_in(decoder, prompt, stops).and_then(|(whole, took)| {
            if !whole {
                stopped = true;
                return Ok(Generated::nothing(took));
            }
            let mut drawn = |token| {
                text.push(token);
                let goes_on = each(token)?;
                stopped = stops();
                Ok(goes_on && !stopped)
            };
            let mut generated = generate(decoder, prompt, how, drafter, &mut |_| {}, &mut drawn)?;
            generated.prompt += took;
            Ok(generated)
        });
        // Of a step that failed nothing is there.
        text.truncate(decoder.len(0) as usize);
        self.tokens = text;
        let generated = done?;
        // A last token that came before it was stopped is an end of its own.
        let stopped = stopped && !generated.ended && generated.tokens.len() < how.tokens;
        Ok(Answer {
            generated,
            cached,
            stopped,
        })
    }
}

/// Takes a prompt in but for its last step; whether it got so far, and what it took.
fn take_in<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    prompt: &[u32],
    stops: &dyn Fn() -> bool,
) -> Result<(bool, Duration), Error> {
    let start = std::time::Instant::now();
    let chunk = decoder.chunk();
    loop {
        if stops() {
            return Ok((false, start.elapsed()));
        }
        let rest = &prompt[decoder.len(0) as usize..];
        if rest.len() <= chunk {
            return Ok((true, start.elapsed()));
        }
        decoder.prompt(0, &rest[..chunk], &mut |_| {})?;
    }
}
