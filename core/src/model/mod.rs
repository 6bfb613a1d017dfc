//! Language models: decoders with ternary and other low-bit weights, read from GGUF files in place and run in the caller's memory, with the same
//! bits on every machine.
//!
//! [`Model`] is a checked view of a file; [`decode`] takes rows (a token each) of any number of sequences through it, over an
//! [engine](crate::engine::ModelEngine), and gives logits; a [`Cache`] keeps keys and values in pages of a pool, and a [`Sequence`] says
//! which pages are whose. What must be remembered is given by the caller, in sizes that [`Needs`] tells before anything runs.
//!
//! # Rules
//! On top of [`crate::number`]; `fl` is one rounding to f32, and nothing is fused.
//! 1. The residual is f32, added element by element.
//! 2. Norm and quantize are one step, [`crate::quant::activations`]: codes of 8 bits for the BitNet architectures, of 16 for all others.
//! 3. A product with weights in blocks is an exact sum of integers, rounded once and scaled once; with weights in floats it is the dot
//!    product of [`crate::number::lanes`], of activations that are not quantized.
//! 4. An angle of rotation is a fraction of a turn in 64 bits ([`crate::number::rope_step`]).
//! 5. Attention is a sum of integers: see [`attention`].
//! 6. Gates are made of [`crate::number::exp2_neg`]: see [`gate`].
//! 7. A draw is a function of seed, stream and position: see [`Sampler`].
//!
//! So nothing depends on how a prompt is cut, on what else is in the batch, or on threads.

pub mod attention;
mod cache;
mod config;
mod decoder;
mod error;
pub mod gate;
mod memory;
mod nll;
mod norm;
mod pass;
mod rope;
mod sample;
mod sequence;
mod tensors;
pub mod tokenizer;
mod view;
mod weights;
mod work;

pub use cache::{Cache, CacheType, Codes, PAGE, Shape as CacheShape};
pub use config::{Architecture, Config, Pattern};
pub use decoder::{Row, decode};
pub use error::{ModelError, Step};
pub use gate::Gate;
pub use memory::{Memory, Needs, Place};
pub use nll::{NLL_UNIT, nll};
pub use rope::{Rope, rotate};
pub use sample::{Sampler, argmax};
pub use sequence::Sequence;
pub use view::{Layer, Model};
pub use weights::{FloatMatrix, FloatType, Values, Weights};
