//! Generates many texts at once: each step evaluates rows of all texts that are under way.
//!
//! A step's time is mostly that of reading the weights, which all rows share. Every text has the tokens and the logits
//! that it has alone.

use std::time::Duration;

use tercet_core::conformance::Digest;
use tercet_core::model::Row;

use super::generate::{Generated, Generation};
use super::run::Decoder;
use crate::Error;
use crate::engine::FlowEngine;

/// A text under way.
struct Text {
    /// Its place among the prompts.
    number: usize,
    /// All of its tokens.
    tokens: Vec<u32>,
    /// Tokens of the prompt.
    prompt: usize,
    /// Tokens that were evaluated.
    done: usize,
    /// Maximum number of tokens to draw.
    most: usize,
    ended: bool,
    digest: Digest,
}

impl Text {
    fn new(number: usize, prompt: &[u32], most: usize) -> Self {
        Self {
            number,
            tokens: prompt.to_vec(),
            prompt: prompt.len(),
            done: 0,
            most,
            ended: false,
            digest: Digest::new(),
        }
    }

    const fn is_prompt(&self) -> bool {
        self.done < self.prompt
    }

    const fn is_finished(&self) -> bool {
        self.ended || self.tokens.len() - self.prompt >= self.most
    }
}

/// Continues every prompt, in all sequences of a decoder; when a text ends, the next prompt takes its sequence. A step
/// has one row for each text that is being written, and prompts fill it up to [`Decoder::chunk`] rows.
///
/// `told` receives the number of rows of each step. `each` receives every finished text with its place among the
/// prompts, in the order in which they end, and returns whether to go on. Times and drafts of [`Generated`] are 0. A
/// text ends at a token of [`Generation::ends`], after [`Generation::tokens`] tokens, or when its sequence is full.
///
/// # Errors
/// [`Error::Options`] for a sampler out of its ranges, a decoder without sequences, and a prompt without tokens or of
/// more than a sequence takes, with its place; those of [`Decoder::step`] and of `each`.
///
/// ```
/// use tercet_host::language::{Generation, LanguageFile, RunOptions, Sampler, View, generate_batch, run};
/// use tercet_host::parallel::Threads;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");
/// let file = LanguageFile::open(path.as_ref())?;
/// let mut view = View::of(&file)?;
/// let model = view.model(&file)?;
/// let prompts = [vec![1, 50, 60], vec![1, 70], vec![1, 80, 90, 91]];
/// let how = Generation { sampler: Sampler::GREEDY, recent: 0, tokens: 8, ends: &[] };
/// let mut digests = Vec::new();
/// for sequences in [1, 3] {
///     let options = RunOptions { sequences, context: Some(16), ..RunOptions::default() };
///     let mut texts = vec![0; prompts.len()];
///     run(&mut Threads::default(), &file, &model, &options, |decoder| {
///         generate_batch(decoder, &prompts, &how, &mut |_| {}, &mut |number, text| {
///             texts[number] = text.digest;
///             Ok(true)
///         })
///     })?;
///     digests.push(texts);
/// }
/// assert_eq!(digests[0], digests[1]);
/// # Ok::<(), tercet_host::Error>(())
/// ```
pub fn generate_batch<E: FlowEngine>(
    decoder: &mut Decoder<'_, '_, E>,
    prompts: &[Vec<u32>],
    how: &Generation<'_>,
    told: &mut dyn FnMut(usize),
    each: &mut dyn FnMut(usize, Generated) -> Result<bool, Error>,
) -> Result<(), Error> {
    how.check()?;
    let room = decoder.room();
    for (number, prompt) in prompts.iter().enumerate() {
        if prompt.is_empty() || prompt.len() > room {
            let len = prompt.len();
            return Err(Error::options(format!(
                "prompt {number} has {len} tokens; a sequence takes 1 to {room}"
            )));
        }
    }
    if decoder.sequences() == 0 {
        return Err(Error::options("there is no sequence for a text"));
    }
    let mut waiting = prompts.iter().enumerate();
    let mut texts: Vec<Option<Text>> = (0..decoder.sequences()).map(|_| None).collect();
    let mut scratch = vec![0; decoder.model().config().vocabulary];
    loop {
        for (sequence, text) in texts.iter_mut().enumerate() {
            if text.is_none()
                && let Some((number, prompt)) = waiting.next()
            {
                decoder.reset(sequence);
                // The last token is not evaluated.
                let most = how.tokens.min((room - prompt.len()).saturating_add(1));
                *text = Some(Text::new(number, prompt, most));
            }
        }
        let (rows, asked) = step(&mut texts, decoder.chunk());
        if rows.is_empty() {
            return Ok(());
        }
        let vocabulary = scratch.len();
        let mut logits = decoder.step(&rows)?.to_vec();
        told(rows.len());
        for (sequence, logits) in asked.into_iter().zip(logits.chunks_exact_mut(vocabulary)) {
            let Some(text) = &mut texts[sequence] else {
                continue;
            };
            if !text.is_finished() {
                draw(text, how, logits, &mut scratch)?;
            }
            if text.is_finished() {
                let generated = Generated {
                    tokens: text.tokens[text.prompt..].to_vec(),
                    ended: text.ended,
                    digest: text.digest.value(),
                    ..Generated::nothing(Duration::ZERO)
                };
                let number = text.number;
                texts[sequence] = None;
                if !each(number, generated)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Returns the rows of a step, at most `most`, and the sequences whose logits are asked for, in their order. Texts that
/// are being written come first, so that prompts do not delay them.
fn step(texts: &mut [Option<Text>], most: usize) -> (Vec<Row>, Vec<usize>) {
    let (mut rows, mut asked): (Vec<Row>, _) = (Vec::new(), Vec::new());
    for prompts in [false, true] {
        for (sequence, text) in texts.iter_mut().enumerate() {
            let Some(text) = text.as_mut().filter(|text| text.is_prompt() == prompts) else {
                continue;
            };
            let end = text.tokens.len().min(text.done + most - rows.len());
            for position in text.done..end {
                let logits = position + 1 == text.tokens.len();
                rows.push(Row {
                    token: text.tokens[position],
                    sequence,
                    logits,
                });
                if logits {
                    asked.push(sequence);
                }
            }
            text.done = end;
        }
    }
    (rows, asked)
}

/// Draws the next token of a text.
fn draw(
    text: &mut Text,
    how: &Generation<'_>,
    logits: &mut [f32],
    scratch: &mut [u32],
) -> Result<(), Error> {
    text.digest.f32s(logits);
    let recent = &text.tokens[text.tokens.len() - how.recent.min(text.tokens.len())..];
    let position = text.tokens.len() as u64;
    let drawn = how.sampler.draw(logits, recent, position, scratch);
    let token = drawn.ok_or_else(|| Error::options("no logit is a number"))?;
    text.tokens.push(token);
    text.ended = how.ends.contains(&token);
    Ok(())
}
