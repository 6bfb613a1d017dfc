//! Language models as GGUF files: written from parameters, a vocabulary and tensors, imported, and run on any engine.
//!
//! [`tercet_core::model`] says what is computed; llama.cpp reads the same files.

mod blocks;
mod file;
mod generate;
mod import;
mod parameters;
mod perplexity;
mod run;
mod tensors;
pub mod tiny;
pub mod tokenizer;
mod vocabulary;
mod writer;

pub use blocks::{byte_rows, ternary};
pub use file::{LanguageFile, View};
pub use generate::{Generated, Generation, generate};
pub use import::{ImportOptions, ImportReport, import};
pub use parameters::{Architecture, Parameters};
pub use perplexity::{Cost, Windows, perplexity};
pub use run::{Decoder, RunOptions, Usage, run};
pub use tensors::{Extras, Role, Slot};
pub use vocabulary::{Merging, TokenKind, Vocabulary};
pub use writer::{Description, Writer, specs};
