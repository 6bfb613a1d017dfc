//! Trains ternary language models in integers: the same data, options and seed give a file with the same bytes for any
//! number of threads, any split of the batch, and any engine.
//!
//! [`tercet_core::train`] describes the computation. A [`Trainer`] holds the weights as floats, the file made from
//! them, and the state of the optimizer. [`Trainer::step`] runs a batch through the file's own model: forwards as every
//! reader of the file runs it, and backwards in integers. So the trained model is the saved one.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tercet_host::language::{Parameters, Vocabulary};
//! use tercet_host::parallel::Threads;
//! use tercet_host::train::{Batches, Corpus, Preset, Tokens, TrainOptions, Trainer};
//!
//! let text = b"the cat sat on the mat. ".repeat(40);
//! let tokens = Tokens::InMemory(text.iter().map(|&byte| byte.into()).collect());
//! let parameters = Parameters { context_length: 16, ..Preset::Nano.parameters(259) };
//! let options = TrainOptions { steps: 2, batch: 2, ..TrainOptions::new(parameters) };
//! let corpus = Arc::new(Corpus::new(tokens, vec![], options.context(), Some(256), options.seed)?);
//! let mut files = Vec::new();
//! for workers in [1, 2] {
//!     let batches = Batches::new(&corpus, options.batch, 0);
//!     let engines = vec![Threads::alone(); workers];
//!     let mut trainer = Trainer::new(engines, &options, Vocabulary::bytes())?;
//!     while trainer.steps() < options.steps {
//!         trainer.step(&batches)?;
//!     }
//!     files.push(trainer.file().to_vec());
//! }
//! // No number of workers shows.
//! assert_eq!(files[0], files[1]);
//! # Ok::<(), tercet_host::Error>(())
//! ```

mod adapters;
mod answers;
mod batches;
mod checkpoint;
mod corpus;
mod evaluate;
mod from;
mod heads;
mod image;
mod in_place;
mod latent;
mod llama;
mod moments;
mod offload;
mod options;
mod plan;
mod profile;
mod profiled;
mod prune;
mod rates;
mod rule;
mod selection;
mod state;
mod step;
mod teacher;
mod tokens;
mod trainer;
mod vocabulary;
mod watch;
mod worker;

pub use batches::Batches;
pub use corpus::Corpus;
pub use heads::KeptHeads;
pub use llama::converted;
pub use options::{Preset, TrainOptions};
pub use plan::{MemoryPlan, PlannedRun};
pub use profile::{Profile, StepOperation, StepShare};
pub use profiled::Profiled;
pub use prune::Pruned;
pub use rates::{RateCurve, RatePoint, RateTest};
pub use selection::{Selected, SelectedCluster, Selection};
pub use step::StepReport;
pub use tokens::{TokenFile, TokenWriter, Tokens};
pub use trainer::Trainer;
pub use vocabulary::vocabulary;
pub use watch::{Verdict, Watch};
