//! Generates a text, token by token.

use std::time::{Duration, Instant};

use tercet_core::conformance::Digest;
use tercet_core::model::{Row, Sampler};

use super::run::Decoder;
use super::speculate::{Drafter, Pace};
use crate::Error;
use crate::engine::FlowEngine;

/// How to continue a text.
#[derive(Clone, Debug)]
pub struct Generation<'a> {
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// Number of last tokens for the sampler's penalty.
    pub recent: usize,
    /// Maximum number of tokens to draw.
    pub tokens: usize,
    /// Tokens that end a text.
    pub ends: &'a [u32],
}

impl Generation<'_> {
    /// Checks the sampler.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.sampler.is_valid() {
            true => Ok(()),
            false => Err(Error::options(
                "the temperature must be at least 0, top-p and min-p from 0 to 1, and the penalty above 0",
            )),
        }
    }
}

/// The drawn tokens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generated {
    /// The tokens, including the ending one.
    pub tokens: Vec<u32>,
    /// True if a token ended the text.
    pub ended: bool,
    /// FNV-1a of 64 bits over the logits that every token was drawn from, in order, each as four little-endian bytes.
    pub digest: u64,
    /// Drafted tokens that were evaluated: 0 without a drafter.
    pub drafted: usize,
    /// Number of these that were drawn.
    pub accepted: usize,
    /// Time of the prompt.
    pub prompt: Duration,
    /// Time of all tokens except the first, whose logits are the prompt's.
    pub decode: Duration,
}

impl Generated {
    /// Returns no tokens, for a prompt that took so long.
    pub(super) fn nothing(prompt: Duration) -> Self {
        Self {
            tokens: Vec::new(),
            ended: false,
            digest: Digest::new().value(),
            drafted: 0,
            accepted: 0,
            prompt,
            decode: Duration::ZERO,
        }
    }
}

/// Continues a prompt in sequence 0, which may already hold the first tokens of it, but not all. `told` receives the
/// number of further evaluated tokens. `each` receives every drawn token, and returns whether to continue. With a
/// `drafter` some steps also evaluate its drafts; only speed and the counts of drafts depend on it.
///
/// # Errors
/// Those of [`Decoder::step`] and of the drafter; [`Error::Options`] for a sampler out of its ranges, and if no token
/// of the prompt is left.
pub fn generate<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    prompt: &[u32],
    how: &Generation<'_>,
    mut drafter: Option<&mut dyn Drafter>,
    told: &mut dyn FnMut(usize),
    each: &mut dyn FnMut(u32) -> Result<bool, Error>,
) -> Result<Generated, Error> {
    how.check()?;
    let mut text = prompt.to_vec();
    let vocabulary = decoder.model().config().vocabulary;
    let mut scratch = vec![0; vocabulary];
    let mut digest = Digest::new();
    let mut generated = Generated::nothing(Duration::ZERO);
    let start = Instant::now();
    let held = (decoder.len(0) as usize).min(prompt.len());
    let mut logits = decoder.prompt(0, &prompt[held..], told)?.to_vec();
    generated.prompt = start.elapsed();
    let start = Instant::now();
    let (mut pace, mut draft) = (Pace::new(), Vec::new());
    'text: while generated.tokens.len() < how.tokens {
        // There is a row of logits after the last token, and one after each token of the draft, as long as these tokens
        // are the drawn ones.
        let mut accepted = 0;
        for (row, logits) in logits.chunks_exact_mut(vocabulary).enumerate() {
            digest.f32s(logits);
            let recent = &text[text.len() - how.recent.min(text.len())..];
            let position = text.len() as u64;
            let drawn = how.sampler.draw(logits, recent, position, &mut scratch);
            let token = drawn.ok_or_else(|| Error::options("no logit is a number"))?;
            text.push(token);
            generated.tokens.push(token);
            let is_right = draft.get(row) == Some(&token);
            accepted += usize::from(is_right);
            generated.ended = how.ends.contains(&token);
            let goes_on = each(token)?;
            if generated.ended || !goes_on || generated.tokens.len() == how.tokens {
                generated.accepted += accepted;
                break 'text;
            }
            if !is_right {
                break;
            }
        }
        generated.accepted += accepted;
        if !draft.is_empty() {
            pace.learn(draft.len(), accepted);
        }
        forget(decoder, text.len() - 1)?;
        draft.clear();
        if let Some(drafter) = &mut drafter {
            // Tokens after the last one that may be drawn are useless.
            let left = how.tokens - generated.tokens.len() - 1;
            let room = decoder.room().saturating_sub(text.len());
            let most = pace.next().min(decoder.chunk() - 1).min(left).min(room);
            if most > 0 {
                draft = drafter.propose(&text, most)?;
                draft.truncate(most);
            }
        }
        generated.drafted += draft.len();
        let tokens = text.last().into_iter().chain(&draft);
        let rows: Vec<Row> = tokens
            .map(|&token| Row {
                token,
                sequence: 0,
                logits: true,
            })
            .collect();
        let stepped = decoder.step(&rows).map(<[f32]>::to_vec);
        logits = match stepped {
            // The failure may concern a row of the draft, which a text without drafts would not have.
            Err(_) if !draft.is_empty() => {
                draft.clear();
                drafter = None;
                decoder.reset(0);
                decoder.prompt(0, &text, &mut |_| {})?.to_vec()
            }
            stepped => stepped?,
        };
    }
    // The last token is not evaluated.
    forget(decoder, text.len().saturating_sub(1).max(prompt.len()))?;
    generated.decode = start.elapsed();
    generated.digest = digest.value();
    Ok(generated)
}

/// Removes the evaluated tokens of a draft that were not drawn: fewer rows than a step has, so a ring still has the
/// positions before them.
fn forget<E: FlowEngine>(decoder: &mut Decoder<'_, '_, E>, len: usize) -> Result<(), Error> {
    let before = decoder.len(0);
    let len = (len as u32).min(before);
    match decoder.cut(0, len) == len {
        true => Ok(()),
        false => Err(Error::options("a draft was longer than a window's room")),
    }
}
