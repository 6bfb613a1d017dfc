//! Language models as GGUF files: written from parameters, a vocabulary and tensors, imported, and run on any engine.
//!
//! [`tercet_core::model`] specifies the computation. llama.cpp reads the same files.
//!
//! ```
//! use tercet_core::block::Format;
//! use tercet_core::model::Sampler;
//! use tercet_host::DType;
//! use tercet_host::language::tokenizer::{Encoding, Specials, Tokenizer};
//! use tercet_host::language::{Generation, LanguageFile, RunOptions, View, generate, run, tiny};
//! use tercet_host::parallel::Threads;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.gguf");
//! // A model of random weights, in place of a trained one.
//! tiny::bitnet(&path, tiny::BITNET, 1, DType::Block(Format::Tq2_0), false)?;
//!
//! let file = LanguageFile::open(&path)?;
//! let mut view = View::of(&file)?;
//! let model = view.model(&file)?;
//! let tokenizer = Tokenizer::read(&file.reader()?, file.bytes(), None)?;
//!
//! let prompt = tokenizer.encode(b"Once upon a time", Encoding::default())?;
//! let sampler = Sampler { temperature: 0.8, seed: 7, ..Sampler::GREEDY };
//! let how = Generation { sampler, recent: 0, tokens: 16, ends: &[] };
//! let mut digests = Vec::new();
//! for engine in &mut [Threads::default(), Threads::alone()] {
//!     let mut stream = tokenizer.stream(Specials::Hidden);
//!     let (generated, _) = run(engine, &file, &model, &RunOptions::default(), |decoder| {
//!         generate(decoder, &prompt, &how, None, &mut |_| {}, &mut |token| {
//!             print!("{}", stream.push(token).unwrap_or_default());
//!             Ok(true)
//!         })
//!     })?;
//!     println!("{}", stream.finish());
//!     assert_eq!(generated.tokens.len(), 16);
//!     digests.push(generated.digest);
//! }
//! // Of all logits: no number of threads shows.
//! assert_eq!(digests[0], digests[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod available;
mod batch;
mod blocks;
#[cfg(feature = "chat")]
pub mod chat;
mod file;
mod generate;
mod import;
mod inputs;
mod model;
mod parameters;
mod perplexity;
mod prune;
mod run;
mod speculate;
mod tensors;
pub mod tiny;
pub mod tokenizer;
mod vocabulary;
mod writer;

pub use batch::generate_batch;
pub use blocks::{byte_rows, ternary};
pub use file::{LanguageFile, View};
pub use generate::{Generated, Generation, generate};
pub use import::{ImportOptions, ImportReport, import};
pub use inputs::Inputs;
pub(crate) use inputs::{COUNTS, SUMS};
pub use model::{LanguageModel, Prompt, Written};
pub use parameters::{Architecture, Parameters};
pub use perplexity::{Cost, Windows, perplexity};
pub use prune::{PruneOptions, PruneReport, PrunedLayer, prune};
pub use run::{Decoder, RunOptions, Usage, run};
pub use speculate::{DraftModel, Drafter, Lookup, same_vocabulary};
pub use tensors::{Extras, Role, Slot};
pub use tercet_core::model::Sampler;
pub use vocabulary::{Merging, TokenKind, Vocabulary};
pub use writer::{Description, Writer, specs};
