//! `--save`, `--resume` and `--with-cache`: the files of a session.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tercet_host::Error;
use tercet_host::engine::FlowEngine;
use tercet_host::language::chat::{CachedTokens, History, Kept, ModelId, Session};
use tercet_host::language::{Decoder, LanguageFile};

use crate::language::Running;
use crate::sampling::Sampling;

/// The options of the command that a session keeps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    pub(super) tokens: Option<usize>,
    pub(super) context: Option<u32>,
    pub(super) sampling: Sampling,
    pub(super) running: Running,
}

impl Options {
    /// Returns these options, with missing ones from a session.
    fn or(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.or(other.tokens),
            context: self.context.or(other.context),
            sampling: self.sampling.or(other.sampling),
            running: self.running.or(other.running),
        }
    }
}

/// The place of a session, and its content.
#[derive(Debug)]
pub(super) struct Saved {
    model: ModelId,
    options: Options,
    template: Option<String>,
    file: Option<PathBuf>,
    with_cache: bool,
    /// True if both files already belong to this session, or may be overwritten.
    owned: bool,
    /// The cache that the session was resumed from.
    kept: Option<Kept>,
}

/// The start of a session.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) options: Options,
    pub(super) history: History,
    /// The template, if it is not that of the model's file.
    pub(super) template: Option<String>,
    /// `None` if nothing is saved and nothing was resumed.
    pub(super) saved: Option<Saved>,
}

/// The options of the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    pub(super) save: Option<&'a Path>,
    pub(super) resume: Option<&'a Path>,
    pub(super) with_cache: bool,
    pub(super) force: bool,
}

/// Returns the file of a session's cache.
fn cache(session: &Path) -> PathBuf {
    let mut name = OsString::from(session);
    name.push(".cache");
    PathBuf::from(name)
}

impl Files<'_> {
    /// Reads the resumed files, and checks that the files to save may be written, before any work.
    pub(super) fn begin(
        self,
        file: &LanguageFile,
        system: Option<&str>,
        options: Options,
        template: Option<String>,
    ) -> Result<Begun, Error> {
        let mut begun = Begun {
            options,
            history: History::new(system),
            template,
            saved: None,
        };
        if self.save.is_none() && self.resume.is_none() {
            return Ok(begun);
        }
        let owned = self.force || self.is_resumed();
        if let Some(save) = self.save.filter(|_| !owned) {
            let caches = self.with_cache.then(|| cache(save));
            for path in [save.to_path_buf()].into_iter().chain(caches) {
                if path.symlink_metadata().is_ok() {
                    return Err(Error::OutputExists { path });
                }
            }
        }
        let model = ModelId::of(file);
        let mut kept = None;
        if let Some(resume) = self.resume {
            let (session, history) = Session::<Options>::read(resume, &model)?;
            begun.options = options.or(session.options);
            begun.template = begun.template.or(session.template);
            begun.history = history;
            let beside = cache(resume);
            if self.with_cache {
                match beside.exists() {
                    true => kept = Some(Kept::open(&beside)?),
                    false => eprintln!(
                        "there is no cache next to {}: its messages are processed again",
                        crate::language::name(resume)
                    ),
                }
            }
        }
        begun.saved = Some(Saved {
            model,
            options: begun.options,
            template: begun.template.clone(),
            file: self.save.map(Path::to_path_buf),
            with_cache: self.with_cache,
            owned,
            kept,
        });
        Ok(begun)
    }

    /// True if a session is saved to the file that it was resumed from.
    fn is_resumed(self) -> bool {
        let full = |path: Option<&Path>| path.and_then(|path| fs::canonicalize(path).ok());
        match (full(self.save), full(self.resume)) {
            (Some(save), Some(resume)) => save == resume,
            _ => false,
        }
    }
}

impl Saved {
    /// Returns the earlier content of the cache.
    pub(super) fn held<E: FlowEngine>(
        &self,
        decoder: &mut Decoder<'_, '_, E>,
    ) -> Result<CachedTokens, Error> {
        match &self.kept {
            Some(kept) => kept.put_back(decoder, &self.model),
            None => Ok(CachedTokens::default()),
        }
    }

    /// Writes the conversation, and the cache if requested.
    pub(super) fn write<E: FlowEngine>(
        &mut self,
        history: &History,
        decoder: &Decoder<'_, '_, E>,
        held: &CachedTokens,
    ) -> Result<(), Error> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let (model, template) = (self.model.clone(), self.template.clone());
        let session = Session::new(model, self.options, template, history);
        session.write(file, self.owned)?;
        if self.with_cache {
            Kept::write(&cache(file), decoder, held, &self.model, self.owned)?;
        }
        self.owned = true;
        Ok(())
    }
}
