//! Measures how well a model predicts a text.

use tercet_core::model::{NLL_UNIT, Row, nll};

use super::run::Decoder;
use crate::Error;
use crate::engine::FlowEngine;
use crate::parallel::each::chunks;

/// The tokens of a text that are scored, and their context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Tokens per window, which begins with an empty cache; at least 2.
    pub context: usize,
    /// The token that every window begins with, if the vocabulary adds one.
    pub begin: Option<u32>,
    /// As in llama-perplexity: `begin` replaces a window's first token, and only the second half of each whole window
    /// is scored.
    pub second_half: bool,
}

impl Windows {
    /// Returns the number of windows for so many tokens; the last window may be shorter.
    pub const fn count(&self, tokens: usize) -> usize {
        if self.context < 2 {
            return 0;
        }
        match self.second_half {
            true => tokens / self.context,
            false => tokens.div_ceil(self.own()),
        }
    }

    /// Returns the tokens of the text in a window.
    const fn own(&self) -> usize {
        match (self.begin, self.second_half) {
            (Some(_), false) => self.context - 1,
            _ => self.context,
        }
    }

    /// Returns how many of so many tokens are scored.
    ///
    /// ```
    /// use tercet_host::language::Windows;
    ///
    /// let windows = Windows { context: 256, begin: None, second_half: false };
    /// assert_eq!(windows.scored(600), 600 - 3); // all but the first of three windows
    /// assert_eq!(Windows { begin: Some(1), ..windows }.scored(600), 600);
    /// assert_eq!(Windows { second_half: true, ..windows }.scored(600), 2 * 127);
    /// ```
    pub const fn scored(&self, tokens: usize) -> usize {
        if self.context < 2 {
            return 0;
        }
        match (self.begin, self.second_half) {
            (_, true) => tokens / self.context * (self.context - 1 - self.context / 2),
            (Some(_), false) => tokens,
            (None, false) => tokens - tokens.div_ceil(self.context),
        }
    }
}

/// The cost of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The sum over all scored tokens, in units of 2⁻³² nats.
    pub sum: i64,
    /// Number of scored tokens.
    pub count: u64,
    /// Number of bytes of their texts.
    pub bytes: u64,
}

impl Cost {
    /// Returns nats per token.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / NLL_UNIT as f64 / self.count as f64
    }

    /// Returns e to the power of the mean.
    pub fn perplexity(&self) -> f64 {
        self.mean().exp()
    }

    /// Returns bits per scored byte.
    pub fn bits_per_byte(&self) -> f64 {
        self.sum as f64 / NLL_UNIT as f64 / std::f64::consts::LN_2 / self.bytes as f64
    }
}

/// Scores the tokens of a text, window by window. `bytes` returns the number of bytes of a token; `told` receives the
/// number of finished tokens.
///
/// Without [`Windows::second_half`] every token after the first of its window is scored, each once. The sum is one of
/// integers, so it does not depend on the order.
///
/// # Errors
/// [`Error::Options`] for a context below 2, or a text of too few tokens; those of [`Decoder::step`].
pub fn perplexity<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    tokens: &[u32],
    windows: &Windows,
    bytes: &dyn Fn(u32) -> usize,
    told: &mut dyn FnMut(usize),
) -> Result<Cost, Error> {
    let context = windows.context;
    if context < 2 {
        return Err(Error::options("a window must have at least two tokens"));
    }
    if windows.scored(tokens.len()) == 0 {
        return Err(Error::options(format!(
            "a text of {} tokens is too short for windows of {context}",
            tokens.len()
        )));
    }
    let mut cost = Cost::default();
    for window in tokens.chunks(windows.own()) {
        let mut text = Vec::with_capacity(context);
        match (windows.begin, windows.second_half) {
            (begin, false) => text.extend(begin.into_iter().chain(window.iter().copied())),
            (_, true) if window.len() < context => break,
            (begin, true) => {
                text.extend_from_slice(window);
                text[0] = begin.unwrap_or(text[0]);
            }
        }
        let first = if windows.second_half { context / 2 } else { 0 };
        score(decoder, &text, first, bytes, &mut cost)?;
        told(window.len());
    }
    Ok(cost)
}

/// Adds the cost of the tokens after the position `first`.
fn score<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    text: &[u32],
    first: usize,
    bytes: &dyn Fn(u32) -> usize,
    cost: &mut Cost,
) -> Result<(), Error> {
    decoder.reset(0);
    let vocabulary = decoder.model().config().vocabulary;
    // No logits are needed after the last token.
    let inputs = &text[..text.len() - 1];
    let mut position = 0;
    for chunk in inputs.chunks(decoder.chunk()) {
        let rows: Vec<Row> = (position..)
            .zip(chunk)
            .map(|(position, &token)| Row {
                token,
                sequence: 0,
                logits: position >= first,
            })
            .collect();
        let asked: Vec<u32> = (position..)
            .zip(chunk)
            .filter(|(position, _)| *position >= first)
            .map(|(position, _)| text[position + 1])
            .collect();
        let logits = decoder.step(&rows)?;
        let costs =
            chunks(logits, vocabulary).gather(|row, logits| nll(logits, asked[row] as usize));
        for (own, &token) in costs.into_iter().zip(&asked) {
            let own = own.ok_or_else(|| Error::options("a logit is not finite"))?;
            // Each is below 2⁶³; for a sum that is not, logits would have to differ by 2³¹.
            let sum = cost.sum.checked_add(own);
            cost.sum = sum.ok_or_else(|| Error::options("the sum of the costs exceeds 64 bits"))?;
            cost.count += 1;
            cost.bytes += bytes(token) as u64;
        }
        position += chunk.len();
    }
    Ok(())
}
