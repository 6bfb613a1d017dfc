//! Language models: decoders with ternary and other low-bit weights. They are read from GGUF files in place and run
//! in the caller's memory, with the same bits on every machine.
//!
//! [`Model`] is a checked view of a file. [`decode`] passes rows (one token each) of any number of sequences through
//! it on an [engine](crate::engine::ModelEngine), and returns logits. A [`Cache`] stores keys and values in pages of
//! a pool, and a [`Sequence`] records the pages that belong to it. The caller provides all memory; [`Needs`] computes
//! its sizes before anything runs.
//!
//! # Rules
//! These add to the rules of [`crate::number`]. `fl` is one rounding to f32, and nothing is fused.
//! 1. The residual is f32, added element by element.
//! 2. Norm and quantization are one step, [`crate::quant::activations`]: 8-bit codes for the BitNet architectures,
//!    16-bit codes for all others.
//! 3. A product with weights in blocks is an exact sum of integers, rounded once and scaled once. A product with
//!    weights in floats is the dot product of [`crate::number::lanes`], with activations that are not quantized.
//! 4. An angle of rotation is a fraction of a turn in 64 bits ([`crate::number::rope_step`]).
//! 5. Attention is a sum of integers: see [`attention`].
//! 6. Gates use [`crate::number::exp2_neg`]: see [`gate`].
//! 7. A draw is a function of seed, stream and position: see [`Sampler`].
//!
//! So the result does not depend on the division of a prompt, on other sequences in the batch, or on threads.
//!
//! # From a file to the next token
//! ```
//! use tercet_core::gguf::Reader;
//! use tercet_core::model::{
//!     Cache, CacheShape, Codes, DecoderLayer, Memory, Model, Needs, Pattern, Place, Row, Sampler, Sequence, decode,
//! };
//! use tercet_core::scalar::Scalar;
//!
//! // A `bitnet` of random weights. Its bytes stay where they are; on a microcontroller that is flash.
//! let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/models/ternary.gguf"));
//! let file = Reader::new(bytes)?;
//! let (layers, steps) = Model::lengths(&file)?;
//! let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
//! let model = Model::new(&file, &mut layers, &mut steps)?;
//!
//! // Sizes come first: here of one sequence of at most 64 positions, in steps of at most 3 rows.
//! let config = model.config();
//! let (pattern, kind, context, rows) = (Pattern::FULL, config.cache, 64, 3);
//! let shape = CacheShape::new(config, kind);
//! let pages = Sequence::pages(pattern, context, rows);
//! let needs = Needs::of(&Scalar, &model, pattern, context, rows as usize)?;
//! assert_eq!((pages * shape.bytes(), needs.total_bytes()), (2048, 3772));
//!
//! // The memory is the caller's. This file names no type of cache, so keys and values are int8, as `bitnet` has them.
//! let codes = pages * shape.codes();
//! let (mut keys, mut values) = (vec![0; codes], vec![0; codes]);
//! let mut scales = vec![0.0; 2 * pages * shape.scales()];
//! let (mut free, mut table) = (vec![0; pages], vec![0; pages]);
//! let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
//! let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free)?;
//! let mut sequences = [Sequence::new(pattern, kind, context, rows, &mut table)?];
//! let mut memory = Memory {
//!     places: &mut vec![Place::default(); needs.places],
//!     floats: &mut vec![0.0; needs.floats],
//!     bytes: &mut vec![0; needs.bytes],
//!     halves: &mut vec![0; needs.halves],
//!     longs: &mut vec![0; needs.longs],
//!     words: &mut vec![0; needs.words],
//! };
//! let mut logits = vec![0.0; config.vocabulary];
//!
//! // A prompt of three tokens in one step; only the logits behind the last are asked for.
//! let prompt = [256, 72, 105];
//! let step = [0, 1, 2].map(|at| Row { token: prompt[at], sequence: 0, logits: at == 2 });
//! let mut fault = None;
//! let sequence = (&mut cache, &mut sequences[..]);
//! decode(&mut Scalar, &model, sequence, &step, &mut memory, &mut logits, &mut |error| fault = Some(error))?;
//! assert_eq!(fault, None);
//!
//! // The token behind it depends on these logits, the seed and its position alone.
//! let sampler = Sampler { temperature: 0.8, top_k: 40, seed: 7, ..Sampler::GREEDY };
//! let mut scratch = vec![0; config.vocabulary];
//! let next = sampler.draw(&mut logits, &prompt, 3, &mut scratch);
//! assert_eq!(next, Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod attention;
mod built;
mod cache;
mod config;
mod decoder;
mod error;
pub mod gate;
mod generator;
mod layer;
mod memory;
mod model_parts;
pub(crate) mod nll;
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

pub(crate) use cache::part;
pub(crate) use layer::{Kept, Tape, add, copy};
pub(crate) use memory::{Gates, Heads, Span, Vectors, cut, enough};
pub(crate) use pass::Pass;
pub(crate) use work::symmetric;

pub use built::{BuiltModel, LayerPlaces, MatrixPlace, TensorPlace, header_hash};
pub use cache::{Cache, CacheType, Codes, PAGE, PageCodes, Shape as CacheShape};
pub use config::{Architecture, Config, Pattern};
pub use decoder::{Progress, Row, decode, decode_piece};
pub use error::{ModelError, Stage};
pub use gate::Gate;
pub use generator::{Draws, End, Event, Generator};
pub use memory::{Memory, Needs, Place};
pub use model_parts::ModelParts;
pub use nll::{NLL_UNIT, nll};
pub use rope::{Rope, rotate};
pub use sample::{Sampler, argmax};
pub use sequence::Sequence;
pub use view::{DecoderLayer, Model};
pub use weights::{FloatMatrix, FloatType, Values, Weights};
