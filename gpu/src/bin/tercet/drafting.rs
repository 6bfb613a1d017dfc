//! `--lookup` and `--draft`: draft tokens for commands that write text.

use std::path::PathBuf;

use tercet_core::model::{Model, Sampler};
use tercet_host::Error;
use tercet_host::language::tokenizer::Tokenizer;
use tercet_host::language::{
    self, DraftModel, Drafter, LanguageFile, Lookup, RunOptions, same_vocabulary,
};
use tercet_host::parallel::Threads;

use crate::failure::Failure;

/// Maximum length of the token sequence that `--lookup` searches for.
const LONGEST: usize = 8;

/// The source of draft tokens; the text does not depend on it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Drafting {
    /// Draft the tokens that followed the same last tokens earlier, and evaluate them at once; those that would be
    /// drawn anyway are kept
    #[arg(long)]
    lookup: bool,
    /// The same with drafts from a smaller model with the same vocabulary, on the processor
    #[arg(long, value_name = "MODEL", conflicts_with = "lookup")]
    draft: Option<PathBuf>,
}

impl Drafting {
    /// Opens the draft model's file, which must have the vocabulary of the model.
    pub(crate) fn file(&self, model: &Tokenizer) -> Result<Option<LanguageFile>, Failure> {
        let Some(path) = &self.draft else {
            return Ok(None);
        };
        let file = LanguageFile::open(path)?;
        same_vocabulary(model, &file.tokenizer()?, path)?;
        Ok(Some(file))
    }
}

/// A source of drafts, ready to start.
pub(crate) struct Drafts<'a> {
    lookup: bool,
    model: Option<(&'a LanguageFile, &'a Model<'a, 'a>, RunOptions)>,
    sampler: Sampler,
    recent: usize,
}

impl<'a> Drafts<'a> {
    /// Returns drafts with the model of [`Drafting::file`], for a text of so many positions, drawn with the same
    /// sampler; `None` for a window without end. A draft model's own context may be shorter.
    pub(crate) fn new(
        drafting: &Drafting,
        model: Option<(&'a LanguageFile, &'a Model<'a, 'a>)>,
        positions: Option<u32>,
        (sampler, recent): (Sampler, usize),
    ) -> Self {
        let model = model.map(|(file, model)| {
            let trained = model.config().context;
            let context = positions.map_or(trained, |positions| positions.min(trained));
            let options = RunOptions {
                context: Some(context),
                ..RunOptions::default()
            };
            (file, model, options)
        });
        Self {
            lookup: drafting.lookup,
            model,
            sampler,
            recent,
        }
    }

    /// Returns the bytes that drafting takes beside the text's own model.
    pub(crate) fn bytes(&self) -> Result<usize, Error> {
        let Some((file, model, options)) = &self.model else {
            return Ok(0);
        };
        let usage = options.usage(&Threads::default(), file, model)?;
        Ok(usage.cache.saturating_add(usage.steps))
    }

    /// Runs a task with the source of drafts.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(Option<&mut dyn Drafter>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.lookup {
            return work(Some(&mut Lookup { longest: LONGEST }));
        }
        let Some((file, model, options)) = &self.model else {
            return work(None);
        };
        let (done, _) = language::run(&mut Threads::default(), file, model, options, |decoder| {
            work(Some(&mut DraftModel::new(
                decoder,
                self.sampler,
                self.recent,
            )))
        })?;
        Ok(done)
    }
}

/// Describes how many drafts were accepted, for people; empty if there were none.
pub(crate) fn words(drafted: usize, accepted: usize) -> String {
    match drafted {
        0 => String::new(),
        _ => format!("; {accepted} of {drafted} drafted tokens accepted"),
    }
}
