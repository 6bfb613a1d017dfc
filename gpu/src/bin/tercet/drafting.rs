//! `--lookup` and `--draft`: what proposes tokens, of commands that write texts.

use std::path::PathBuf;

use tercet_core::model::{Model, Sampler};
use tercet_host::Error;
use tercet_host::language::tokenizer::Tokenizer;
use tercet_host::language::{
    self, DraftModel, Drafter, LanguageFile, Lookup, RunOptions, same_vocabulary,
};
use tercet_host::parallel::Threads;

use crate::failure::Failure;

/// The most tokens that `--lookup` looks for.
const LONGEST: usize = 8;

/// What proposes tokens; no text depends on it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Drafting {
    /// Take in at once what stood behind the last tokens when they came before; it is kept as far as it is what is drawn anyway
    #[arg(long)]
    lookup: bool,
    /// The same with what a smaller model of the same vocabulary writes, on the processor
    #[arg(long, value_name = "MODEL", conflicts_with = "lookup")]
    draft: Option<PathBuf>,
}

impl Drafting {
    /// The draft's file, which has the vocabulary of a model.
    pub(crate) fn file(&self, model: &Tokenizer) -> Result<Option<LanguageFile>, Failure> {
        let Some(path) = &self.draft else {
            return Ok(None);
        };
        let file = LanguageFile::open(path)?;
        same_vocabulary(model, &file.tokenizer()?, path)?;
        Ok(Some(file))
    }
}

/// What proposes, ready to begin.
pub(crate) struct Drafts<'a> {
    lookup: bool,
    model: Option<(&'a LanguageFile, &'a Model<'a, 'a>, RunOptions)>,
    sampler: Sampler,
    recent: usize,
}

impl<'a> Drafts<'a> {
    /// With the model of [`Drafting::file`], for a text of so many positions, drawn in such a way; `None` where a window has no end. A
    /// draft's own context may be shorter.
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

    /// Bytes that proposing takes beside the text's own model.
    pub(crate) fn bytes(&self) -> Result<usize, Error> {
        let Some((file, model, options)) = &self.model else {
            return Ok(0);
        };
        let usage = options.usage(&Threads::default(), file, model)?;
        Ok(usage.cache.saturating_add(usage.steps))
    }

    /// Does a work with what proposes.
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

/// How drafts did, for people; nothing where there was none.
pub(crate) fn words(drafted: usize, accepted: usize) -> String {
    match drafted {
        0 => String::new(),
        _ => format!("; {accepted} of {drafted} drafted tokens accepted"),
    }
}
