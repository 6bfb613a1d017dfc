//! Training of ternary language models in integers: the same data, options and seed give a file of the same bytes for any number of threads, any
//! split of the batch, and any engine.
//!
//! [`tercet_core::train`] says what is computed. A [`Trainer`] holds the weights as floats, the file that they make, and what the
//! optimizer remembers; [`Trainer::step`] takes a batch through the file's own model, forwards as every reader of the file runs it, and
//! backwards in integers. So what is trained is what is saved.
//!
//! ```
//! use tercet_host::parallel::Threads;
//! use tercet_host::train::{Corpus, Preset, TrainOptions, Trainer};
//! use tercet_host::language::Vocabulary;
//!
//! let text = b"the cat sat on the mat. ".repeat(40);
//! let tokens: Vec<u32> = text.iter().map(|&byte| byte.into()).collect();
//! let options = TrainOptions {
//!     steps: 2,
//!     batch: 2,
//!     context: 16,
//!     ..TrainOptions::new(Preset::Nano)
//! };
//! let mut files = Vec::new();
//! for workers in [1, 2] {
//!     let corpus = Corpus::new(tokens.clone(), options.context, Some(256), options.seed)?;
//!     let engines = vec![Threads::alone(); workers];
//!     let mut trainer = Trainer::new(engines, &options, Vocabulary::bytes())?;
//!     while trainer.steps() < options.steps {
//!         trainer.step(&corpus)?;
//!     }
//!     files.push(trainer.file().to_vec());
//! }
//! // No number of workers shows.
//! assert_eq!(files[0], files[1]);
//! # Ok::<(), tercet_host::Error>(())
//! ```

mod corpus;
mod image;
mod options;
mod state;
mod trainer;
mod worker;

pub use corpus::Corpus;
pub use options::{Preset, TrainOptions};
pub use trainer::{StepReport, Trainer};
