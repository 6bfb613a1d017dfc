//! Conversations: a file's template, prompts that reuse the cache, and saved sessions.
//!
//! ```
//! use tercet_core::model::Sampler;
//! use tercet_host::language::chat::{CachedTokens, History, Prompts, Template};
//! use tercet_host::language::tokenizer::{Specials, Tokenizer};
//! use tercet_host::language::{Generation, LanguageFile, RunOptions, View, run, tiny};
//! use tercet_host::parallel::Threads;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.gguf");
//! // A model of random weights with ChatML's template, in place of a trained one.
//! tiny::chat(&path, tiny::CHAT, 1, false)?;
//! let file = LanguageFile::open(&path)?;
//! let mut view = View::of(&file)?;
//! let model = view.model(&file)?;
//! let tokenizer = Tokenizer::read(&file.reader()?, file.bytes(), None)?;
//! let template = Template::of(&file)?.expect("the file has a template");
//! let prompts = Prompts::new(&template, &tokenizer);
//!
//! let how = Generation { sampler: Sampler::GREEDY, recent: 0, tokens: 8, ends: &[] };
//! let mut history = History::new(Some("Be brief."));
//! let context = model.config().context as usize;
//! run(&mut Threads::default(), &file, &model, &RunOptions::default(), |decoder| {
//!     let mut held = CachedTokens::default();
//!     for question in ["Hello?", "And then?"] {
//!         let prompt = history.prompt(&prompts, question, context, how.tokens)?;
//!         let answer = held.answer(decoder, &prompt.tokens, &how, None, &|| false, &mut |_| Ok(true))?;
//!         // The second prompt begins with the first and its answer, which is in the cache.
//!         assert_eq!(answer.cached > 0, question == "And then?");
//!         let text = tokenizer.decode(&answer.generated.tokens, Specials::Hidden);
//!         history.add(question.into(), String::from_utf8_lossy(&text.unwrap_or_default()).into());
//!     }
//!     Ok(())
//! })?;
//! assert_eq!(history.messages().len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod history;
mod kept;
mod message;
mod prompt;
mod session;
mod template;

pub use answer::{Answer, CachedTokens};
pub use history::{History, Prompt};
pub use kept::Kept;
pub use message::{Message, Role};
pub use prompt::Prompts;
pub use session::{ModelId, Session};
pub use template::{TEMPLATE_KEY, Template, TokenTexts};
