//! A text, token by token.

use std::time::{Duration, Instant};

use tercet_core::conformance::Digest;
use tercet_core::model::{Row, Sampler};

use super::run::Decoder;
use crate::Error;
use crate::engine::FlowEngine;

/// How a text is continued.
#[derive(Clone, Debug)]
pub struct Generation<'a> {
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// How many of the last tokens the sampler's penalty looks back at.
    pub recent: usize,
    /// The most tokens to draw.
    pub tokens: usize,
    /// Tokens that end a text.
    pub ends: &'a [u32],
}

/// What was drawn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Generated {
    /// The tokens, the ending one included.
    pub tokens: Vec<u32>,
    /// Whether a token ended it.
    pub ended: bool,
    /// FNV-1a of 64 bits over the logits that every token was drawn from, in order, each as four little-endian bytes.
    pub digest: u64,
    /// What the prompt took.
    pub prompt: Duration,
    /// What all tokens but the first took, whose logits are the prompt's.
    pub decode: Duration,
}

impl Generated {
    /// No token, of a prompt that took so long.
    pub(super) fn nothing(prompt: Duration) -> Self {
        Self {
            tokens: Vec::new(),
            ended: false,
            digest: Digest::new().value(),
            prompt,
            decode: Duration::ZERO,
        }
    }
}

/// Continues a prompt in sequence 0, which may hold the first tokens of it already, but not all; `told` gets the number of tokens
/// that are in beside those, and `each` every token that is drawn: it says whether to go on.
///
/// # Errors
/// Those of [`Decoder::step`]; [`Error::Options`] for a sampler out of its ranges, and where no token of the prompt is left.
pub fn generate<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    prompt: &[u32],
    how: &Generation<'_>,
    told: &mut dyn FnMut(usize),
    each: &mut dyn FnMut(u32) -> Result<bool, Error>,
) -> Result<Generated, Error> {
    if !how.sampler.is_valid() {
        return Err(Error::options(
            "temperature is at least 0, top-p and min-p are from 0 to 1, the penalty is above 0",
        ));
    }
    let mut text = prompt.to_vec();
    let mut scratch = vec![0; decoder.model().config().vocabulary];
    let mut digest = Digest::new();
    let mut generated = Generated::nothing(Duration::ZERO);
    let start = Instant::now();
    let held = (decoder.len(0) as usize).min(prompt.len());
    let mut logits = decoder.prompt(0, &prompt[held..], told)?.to_vec();
    generated.prompt = start.elapsed();
    let start = Instant::now();
    while generated.tokens.len() < how.tokens {
        digest.f32s(&logits);
        let recent = &text[text.len() - how.recent.min(text.len())..];
        let position = text.len() as u64;
        let drawn = how
            .sampler
            .draw(&mut logits, recent, position, &mut scratch);
        let token = drawn.ok_or_else(|| Error::options("no logit is a number"))?;
        text.push(token);
        generated.tokens.push(token);
        generated.ended = how.ends.contains(&token);
        let goes_on = each(token)?;
        if generated.ended || !goes_on || generated.tokens.len() == how.tokens {
            break;
        }
        let row = Row {
            token,
            sequence: 0,
            logits: true,
        };
        logits.copy_from_slice(decoder.step(&[row])?);
    }
    generated.decode = start.elapsed();
    generated.digest = digest.value();
    Ok(generated)
}
