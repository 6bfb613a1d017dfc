//! An answer: continues a prompt whose beginning may be in the cache.

use std::time::Duration;

use crate::Error;
use crate::engine::FlowEngine;
use crate::language::run::Decoder;
use crate::language::{Drafter, Generated, Generation, generate};

/// The content of a sequence of a cache: the evaluated tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedTokens {
    tokens: Vec<u32>,
}

/// The result of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The drawn tokens. The digest covers this answer's logits, and the prompt's time that of the tokens not in the
    /// cache.
    pub generated: Generated,
    /// Tokens of the prompt that were in the cache.
    pub cached: usize,
    /// True if it was stopped.
    pub stopped: bool,
}

impl CachedTokens {
    /// Returns the content of a restored cache.
    pub(super) fn of(tokens: Vec<u32>) -> Self {
        Self { tokens }
    }

    /// Returns the tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Continues a prompt in sequence 0. First tokens that are already in the cache are not evaluated again. Tokens
    /// after them are removed from the cache, and so are all tokens if a window's ring has overwritten positions that
    /// they attend to. The answer's bits do not depend on the cache.
    ///
    /// `stops` is called between steps; `each` receives every token and returns whether to continue.
    ///
    /// # Errors
    /// Those of [`generate`]. Evaluated tokens stay in the cache.
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
        // The last token's logits are needed.
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
        // A failed step leaves nothing in the cache.
        text.truncate(decoder.len(0) as usize);
        self.tokens = text;
        let generated = done?;
        // A last token that came before the stop is a regular end.
        let stopped = stopped && !generated.ended && generated.tokens.len() < how.tokens;
        Ok(Answer {
            generated,
            cached,
            stopped,
        })
    }
}

/// Evaluates a prompt except for its last step; returns whether it was not stopped, and the time.
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
