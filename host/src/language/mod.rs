//! Language models from GGUF files, run on any engine; [`tercet_core::model`] says what is computed.

mod file;
mod generate;
mod perplexity;
mod run;
pub mod tokenizer;

pub use file::{LanguageFile, View};
pub use generate::{Generated, Generation, generate};
pub use perplexity::{Cost, Windows, perplexity};
pub use run::{Decoder, RunOptions, Usage, run};
