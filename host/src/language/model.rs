//! A language model with its tokenizer: texts in, texts out.

use std::path::Path;

use tercet_core::model::{Row, Sampler};

use super::tokenizer::{Encoding, Specials, Tokenizer};
use super::{Cost, Generation, LanguageFile, RunOptions, View, Windows, generate, perplexity, run};
use crate::Error;
use crate::engine::FlowEngine;
use crate::parallel::Threads;

/// A mapped GGUF file with the architecture `bitnet` or `llama`, and its tokenizer.
///
/// ```
/// use tercet_host::LanguageModel;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");
/// let model = LanguageModel::open(path)?;
/// let written = model.prompt("ROMEO:").tokens(12).generate()?;
/// // The same text and the same digest of logits on every machine.
/// println!("{} {:016x}", written.text, written.digest);
/// assert_eq!(written.tokens.len(), 12);
/// # Ok::<(), tercet_host::Error>(())
/// ```
///
/// Weights are multiplied in place in the file's map. Each [`Prompt::generate`] checks them again, which takes one pass
/// over them, and allocates its cache. To keep a cache between texts, or to run several texts at once, use [`run`].
#[derive(Debug)]
pub struct LanguageModel {
    file: LanguageFile,
    tokenizer: Tokenizer,
    ends: Vec<u32>,
    context: usize,
}

impl LanguageModel {
    /// Opens a model and checks it completely.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::BadFile`] and [`Error::Tensor`] for a file that breaks its format's rules;
    /// [`Error::Unsupported`] for another architecture or tokenizer, with its name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = LanguageFile::open(path.as_ref())?;
        let context = View::of(&file)?.model(&file)?.config().context as usize;
        let tokenizer = file.tokenizer()?;
        let ends = tokenizer.ends();
        Ok(Self {
            file,
            tokenizer,
            ends,
            context,
        })
    }

    /// Returns the tokenizer of the file.
    pub const fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the number of positions that the model was trained for.
    pub const fn context(&self) -> usize {
        self.context
    }

    /// Returns a [`Prompt`] that continues a text. By default it writes at most 128 tokens, each the likeliest.
    pub fn prompt<'m>(&'m self, text: &'m str) -> Prompt<'m> {
        Prompt {
            model: self,
            text,
            tokens: 128,
            sampler: Sampler::GREEDY,
        }
    }

    /// Measures how well the model predicts a text, in windows of its whole context, as `tercet perplexity` does.
    /// Returns the sum of the tokens' costs, from which [`Cost::perplexity`] and [`Cost::bits_per_byte`] compute those
    /// figures. Lower is better.
    ///
    /// ```
    /// use tercet_host::LanguageModel;
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");
    /// let model = LanguageModel::open(path)?;
    /// let cost = model.evaluate("The quality of mercy is not strain'd")?;
    /// println!("{:.1}, {:.2} bits per byte", cost.perplexity(), cost.bits_per_byte());
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Options`] for a text without a token to predict: an empty one, and one of a single token if the model's
    /// texts begin with no token of their own; those of [`run`].
    pub fn evaluate(&self, text: &str) -> Result<Cost, Error> {
        self.evaluate_with(text, &mut |_| ())
    }

    /// Does [`LanguageModel::evaluate`], and calls `told` with the number of tokens of each window that is done.
    ///
    /// # Errors
    /// Those of [`LanguageModel::evaluate`].
    pub fn evaluate_with(&self, text: &str, told: &mut dyn FnMut(usize)) -> Result<Cost, Error> {
        // Each window begins with the token that begins a text, the first one too.
        let tokens = self.encode(text, false)?;
        let mut view = View::of(&self.file)?;
        let model = view.model(&self.file)?;
        let vocabulary = self.tokenizer.vocabulary();
        let windows = Windows {
            context: self.context,
            begin: vocabulary.bos().filter(|_| vocabulary.adds_bos()),
            second_half: false,
        };
        if windows.scored(tokens.len()) == 0 {
            return Err(Error::options(format!(
                "the text has {} tokens, so there is no token to predict; give a longer text",
                tokens.len()
            )));
        }
        let bytes = |token| self.tokenizer.bytes(token);
        let (cost, _) = run(
            &mut Threads::default(),
            &self.file,
            &model,
            &RunOptions::default(),
            |decoder| perplexity(decoder, &tokens, &windows, &bytes, told),
        )?;
        Ok(cost)
    }

    /// Returns the logits after the last of `tokens`, or after each if `each` is true: a row of the vocabulary's size
    /// per token. Takes one pass over the tokens.
    ///
    /// ```
    /// use tercet_host::LanguageModel;
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");
    /// let model = LanguageModel::open(path)?;
    /// let each = model.logits(&[1, 2, 3], true)?;
    /// let last = model.logits(&[1, 2, 3], false)?;
    /// assert_eq!(each.len(), 3 * last.len());
    /// assert!(each.ends_with(&last));
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Options`] for no tokens or more than the model's context takes; [`Error::Unsupported`] for a token that
    /// the vocabulary does not have; [`Error::Memory`].
    pub fn logits(&self, tokens: &[u32], each: bool) -> Result<Vec<f32>, Error> {
        let mut view = View::of(&self.file)?;
        let model = view.model(&self.file)?;
        let is_ring = model.config().pattern.is_ring();
        if tokens.is_empty() || (tokens.len() > self.context && !is_ring) {
            return Err(Error::options(format!(
                "{} tokens are given; this model takes 1 to {}",
                tokens.len(),
                self.context
            )));
        }
        let options = RunOptions {
            context: Some(u32::try_from(tokens.len()).unwrap_or(u32::MAX)),
            ..RunOptions::default()
        };
        let engine = &mut Threads::default();
        let (logits, _) = run(engine, &self.file, &model, &options, |decoder| {
            if !each {
                return Ok(decoder.prompt(0, tokens, &mut |_| ())?.to_vec());
            }
            let mut logits = Vec::new();
            for chunk in tokens.chunks(decoder.chunk()) {
                let row = |&token| Row {
                    token,
                    sequence: 0,
                    logits: true,
                };
                let rows: Vec<Row> = chunk.iter().map(row).collect();
                logits.extend_from_slice(decoder.step(&rows)?);
            }
            Ok(logits)
        })?;
        Ok(logits)
    }

    fn encode(&self, text: &str, ends: bool) -> Result<Vec<u32>, Error> {
        let encoding = Encoding {
            ends,
            ..Encoding::default()
        };
        let tokens = self.tokenizer.encode(text.as_bytes(), encoding);
        tokens.map_err(Error::options)
    }
}

/// A text to continue, with options; [`Prompt::generate`] continues it.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'m> {
    model: &'m LanguageModel,
    text: &'m str,
    tokens: usize,
    sampler: Sampler,
}

/// A generated text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// The text after the prompt.
    pub text: String,
    /// Its tokens, including the one that ended it.
    pub tokens: Vec<u32>,
    /// True if a token ended it, false if the maximum number of tokens or the model's context did.
    pub ended: bool,
    /// FNV-1a of 64 bits over the logits that every token was drawn from; see [`super::Generated::digest`].
    pub digest: u64,
}

impl Prompt<'_> {
    /// Sets the maximum number of tokens.
    pub const fn tokens(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// Draws tokens with this sampler, instead of taking the likeliest. The same seed draws the same text on every
    /// machine. For a temperature and a seed alone, [`Prompt::temperature`] and [`Prompt::seed`] are shorter.
    ///
    /// ```no_run
    /// use tercet_host::LanguageModel;
    /// use tercet_host::language::Sampler;
    ///
    /// let model = LanguageModel::open("stories15M.gguf")?;
    /// let sampler = Sampler { temperature: 0.8, top_k: 40, seed: 7, ..Sampler::GREEDY };
    /// println!("{}", model.prompt("Once upon a time").sample(sampler).generate()?.text);
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    pub const fn sample(mut self, sampler: Sampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// Draws tokens at this temperature, instead of taking the likeliest: 1 draws as the model predicts, less prefers
    /// likely tokens, and 0 takes the likeliest. Other settings of the sampler stay as they are.
    ///
    /// ```
    /// use tercet_host::LanguageModel;
    ///
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/nano.gguf");
    /// let model = LanguageModel::open(path)?;
    /// let drawn = |seed| model.prompt("ROMEO:").tokens(12).temperature(0.8).seed(seed).generate();
    /// assert_eq!(drawn(7)?, drawn(7)?);
    /// assert_ne!(drawn(7)?.text, drawn(8)?.text);
    /// # Ok::<(), tercet_host::Error>(())
    /// ```
    pub const fn temperature(mut self, temperature: f32) -> Self {
        self.sampler.temperature = temperature;
        self
    }

    /// Seeds the draws of tokens; it has no effect at a temperature of 0. The same seed draws the same text on every
    /// machine.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.sampler.seed = seed;
        self
    }

    /// Generates the text on all threads.
    ///
    /// # Errors
    /// As [`Prompt::generate_on`].
    pub fn generate(&self) -> Result<Written, Error> {
        self.generate_on(&mut Threads::default(), |_| true)
    }

    /// Generates the text on an engine and calls `on_text` with each new piece of it; if it returns false, the text
    /// ends there.
    ///
    /// # Errors
    /// [`Error::Options`] for an empty prompt if the model's texts begin with no token of their own, for a prompt
    /// longer than the model's context, and for a sampler out of its ranges; [`Error::Memory`]; [`Error::Engine`].
    pub fn generate_on<E: FlowEngine>(
        &self,
        engine: &mut E,
        mut on_text: impl FnMut(&str) -> bool,
    ) -> Result<Written, Error> {
        let LanguageModel {
            file,
            tokenizer,
            ends,
            context,
        } = self.model;
        let context = *context;
        let prompt = self.model.encode(self.text, true)?;
        let mut view = View::of(file)?;
        let model = view.model(file)?;
        let is_ring = model.config().pattern.is_ring();
        if prompt.is_empty() || (prompt.len() > context && !is_ring) {
            return Err(Error::options(format!(
                "the prompt has {} tokens; this model takes 1 to {context}",
                prompt.len()
            )));
        }
        let room = match is_ring {
            true => usize::MAX,
            false => context - prompt.len() + 1,
        };
        let how = Generation {
            sampler: self.sampler,
            recent: 64,
            tokens: self.tokens.min(room),
            ends,
        };
        // The last token is not evaluated.
        let positions = prompt.len().saturating_add(how.tokens.saturating_sub(1));
        let options = RunOptions {
            context: Some(u32::try_from(positions).unwrap_or(u32::MAX)),
            ..RunOptions::default()
        };
        let mut text = String::new();
        let mut drawn = 0;
        let mut stream = tokenizer.stream(Specials::Hidden);
        // Text that decoding drops at the start of a text's first token is then dropped from the prompt's.
        for &token in &prompt {
            stream.push(token).map_err(Error::options)?;
        }
        let mut go_on = true;
        let (generated, _) = run(engine, file, &model, &options, |decoder| {
            let mut number = 0;
            let mut each = |token| {
                number += 1;
                // If threads take over from an engine, they begin again, with the same tokens.
                if number > drawn {
                    drawn = number;
                    if !ends.contains(&token) {
                        let piece = stream.push(token).map_err(Error::options)?;
                        go_on = on_text(&piece);
                        text.push_str(&piece);
                    }
                }
                Ok(go_on)
            };
            generate(decoder, &prompt, &how, None, &mut |_| (), &mut each)
        })?;
        text.push_str(&stream.finish());
        Ok(Written {
            text,
            tokens: generated.tokens,
            ended: generated.ended,
            digest: generated.digest,
        })
    }
}
