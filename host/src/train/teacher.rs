//! A teacher: another model, whose predictions a run learns from.

use std::path::Path;

use tercet_core::conformance::Digest;
use tercet_core::model::Row;
use tercet_core::train::{SoftTargets, soften};

use super::answers::Answers;
use super::options::TrainOptions;
use crate::Error;
use crate::language::{Decoder, LanguageFile, RunOptions, View, Vocabulary, run};
use crate::parallel::Threads;

/// A model and what is learned from it.
#[derive(Debug)]
pub(super) struct Teacher {
    file: LanguageFile,
    temperature: f32,
    share: f32,
    digest: u64,
    /// Number of its tokens.
    vocabulary: usize,
    pub(super) answers: Option<Answers>,
}

/// Checks that a model can teach a run with these options and this vocabulary. Returns the number of its tokens.
pub(super) fn check(
    file: &LanguageFile,
    (options, vocabulary): (&TrainOptions, &Vocabulary),
) -> Result<usize, Error> {
    let refuse = |reason: String| Error::unsupported(file.path(), reason);
    let mut view = View::of(file)?;
    let config = *view.model(file)?.config();
    let own = Vocabulary::read(&file.reader()?).map_err(refuse)?;
    let most = own.tokens.len().max(vocabulary.tokens.len());
    let other = (0..most).find(|&id| own.tokens.get(id) != vocabulary.tokens.get(id));
    if let Some(id) = other {
        let text =
            |token: Option<&String>| token.map_or("none".into(), |token| format!("`{token}`"));
        return Err(refuse(format!(
            "a teacher needs the same tokens: token {id} is {}, but {} in the model in training",
            text(own.tokens.get(id)),
            text(vocabulary.tokens.get(id))
        )));
    }
    if config.vocabulary != most {
        return Err(refuse(format!(
            "a teacher needs the same tokens: it has logits for {}, but {most} tokens",
            config.vocabulary
        )));
    }
    if (config.context as usize) < options.context() {
        return Err(refuse(format!(
            "a teacher reads whole sequences: {} tokens, but its context has {}",
            options.context(),
            config.context
        )));
    }
    Ok(most)
}

/// Returns the bytes that a worker needs to ask a teacher about `micro` sequences of `length` tokens: for its
/// probabilities, and in addition while it runs.
pub(super) fn bytes(
    file: &LanguageFile,
    (length, micro): (usize, usize),
) -> Result<(usize, usize), Error> {
    let mut view = View::of(file)?;
    let model = view.model(file)?;
    let usage = options(length).usage(&Threads::alone(), file, &model)?;
    let rows = length.saturating_mul(micro);
    let probabilities = rows.saturating_mul(model.config().vocabulary);
    Ok((
        probabilities.saturating_mul(size_of::<f32>()),
        usage.cache.saturating_add(usage.steps),
    ))
}

/// Returns how a teacher runs on a sequence.
fn options(length: usize) -> RunOptions {
    RunOptions {
        context: Some(length as u32),
        ..RunOptions::default()
    }
}

/// Replaces the content of a buffer by a teacher's probabilities for the tokens of some sequences.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&[u32], &mut Vec<f32>) -> Result<(), Error>;

impl Teacher {
    /// Returns a teacher for a run with these options and this vocabulary.
    pub(super) fn new(
        file: LanguageFile,
        (options, vocabulary): (&TrainOptions, &Vocabulary),
        temperature: f32,
        share: f32,
    ) -> Result<Self, Error> {
        if SoftTargets::new(&[], temperature, share).is_none() {
            return Err(Error::options(format!(
                "the temperature is {temperature} and the teacher's share {share}: the first must be above 0, the \
                 second from 0 to 1"
            )));
        }
        let vocabulary = check(&file, (options, vocabulary))?;
        let mut digest = Digest::new();
        digest.bytes(file.bytes());
        let digest = digest.value();
        Ok(Self {
            file,
            temperature,
            share,
            digest,
            vocabulary,
            answers: None,
        })
    }

    /// Looks up logits of sequences of `length` tokens in a file first, and writes those that were not there.
    pub(super) fn keep_answers(&mut self, path: &Path, length: usize) -> Result<(), Error> {
        let shape = (length, self.vocabulary);
        self.answers = Some(Answers::open(path, self.digest, shape)?);
        Ok(())
    }

    /// Returns what of it decides the bits of a run.
    pub(super) fn identity(&self) -> String {
        let Self {
            digest,
            temperature,
            share,
            ..
        } = self;
        format!("{digest:016x} at temperature {temperature:?} with share {share:?}")
    }

    /// Returns the targets of probabilities that were asked for.
    pub(super) fn targets<'b>(&self, probabilities: &'b [f32]) -> Option<SoftTargets<'b>> {
        SoftTargets::new(probabilities, self.temperature, self.share)
    }

    /// Calls a function that may ask about sequences of `length` tokens, on this thread.
    pub(super) fn run(
        &self,
        length: usize,
        work: impl FnOnce(Ask<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut view = View::of(&self.file)?;
        let model = view.model(&self.file)?;
        let options = options(length);
        // The bits are the same on every engine; alone, as the workers are.
        let mut engine = Threads::alone();
        run(&mut engine, &self.file, &model, &options, |decoder| {
            work(&mut |tokens, probabilities| self.answer(decoder, (tokens, length), probabilities))
        })?;
        Ok(())
    }

    fn answer(
        &self,
        decoder: &mut Decoder<'_, '_, Threads>,
        (tokens, length): (&[u32], usize),
        probabilities: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let vocabulary = decoder.model().config().vocabulary;
        probabilities.clear();
        probabilities.reserve(tokens.len() * vocabulary);
        let mut rows = Vec::with_capacity(decoder.chunk());
        for sequence in tokens.chunks(length) {
            let answers = self.answers.as_ref();
            if let Some(answers) = answers
                && answers.find(sequence, probabilities)?
            {
                continue;
            }
            let first = probabilities.len();
            decoder.reset(0);
            for chunk in sequence.chunks(decoder.chunk()) {
                rows.clear();
                rows.extend(chunk.iter().map(|&token| Row {
                    token,
                    sequence: 0,
                    logits: true,
                }));
                probabilities.extend_from_slice(decoder.step(&rows)?);
            }
            if let Some(answers) = answers {
                answers.keep(sequence, &probabilities[first..])?;
            }
        }
        for logits in probabilities.chunks_mut(vocabulary) {
            if !soften(logits, self.temperature) {
                return Err(Error::unsupported(
                    self.file.path(),
                    "a logit of the teacher is not finite",
                ));
            }
        }
        Ok(())
    }
}
