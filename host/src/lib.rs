//! Tercet on a desktop: real model files in, quantized files out.
//!
//! [`Model::open`] maps a safetensors, npy or GGUF file; [`quantize`] writes it in another format, with every core
//! busy and memory bounded; [`dequantize`] goes back, [`inspect`], [`compare`] and [`calibrate`] look.
//! [`search`] finds the nearest rows of a matrix.
//! All numbers come from [`tercet_core`]: the number of threads and the size of the tiles do not show in a bit, nor does the
//! engine that these flows run on, which [`engine`] says how to choose.
//!
//! Features leave out what a program does not use, and change no bit of the rest; all are on by default.
//!
//! | feature | is |
//! |---|---|
//! | `files` | [`Model`], [`convert`], [`mod@file`], [`language`], [`quantize`], [`dequantize`], [`inspect`], [`compare`], [`calibrate`], points from files |
//! | `clustering` | [`cluster`], and its kernels |
//! | `search` | [`search`], and its kernels |
//! | `network` | [`network`]; takes `files` along |
//! | `measure` | [`measure`]; takes `files`, `clustering` and `search` along |
//! | `reports` | [`report`]; takes `files` along |
//! | `train` | [`train`]; takes `files` along |
//! | `simd` | the kernels of instruction sets; without it every engine is core's loops, on all threads |
//! | `serde` | `Serialize` for what is reported without `files`, which takes it along |
//!
//! ```
//! use tercet_core::block::Format;
//! use tercet_host::convert::{DequantizeOptions, FloatType, Target};
//! use tercet_host::parallel::Threads;
//! use tercet_host::{Model, QuantizeOptions, compare, dequantize, quantize};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.gguf"));
//! # let values: Vec<f32> = (0..1024).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
//! # let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 256), }");
//! # let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
//! # npy.extend_from_slice(header.as_bytes());
//! # npy.extend(values.iter().flat_map(|x| x.to_le_bytes()));
//! # std::fs::write(&input, npy)?;
//! // 4 x 256 floats become four blocks of TQ2_0; `()` listens to no progress.
//! let model = Model::open(&input)?;
//! let threads = &mut Threads::default();
//! let report = quantize(threads, &model, &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)), &output, &())?;
//! assert_eq!((report.tensors[0].to.as_str(), report.bits_per_weight), ("tq2_0", 2.0625));
//! assert!(report.tensors[0].relative_error.unwrap() < 0.3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(feature = "default"),
    allow(
        dead_code,
        unused_imports,
        reason = "what features share is used by those that are on; the default ones use all of it"
    )
)]

#[cfg(feature = "files")]
mod calibrate;
#[cfg(feature = "clustering")]
pub mod cluster;
#[cfg(feature = "files")]
mod compare;
pub mod conformance;
#[cfg(feature = "files")]
pub mod convert;
#[cfg(feature = "files")]
mod dtype;
pub mod engine;
mod error;
#[cfg(feature = "files")]
pub mod file;
#[cfg(feature = "files")]
mod floats;
#[cfg(feature = "files")]
mod inspect;
#[cfg(feature = "files")]
pub mod language;
pub mod linear;
#[cfg(feature = "measure")]
pub mod measure;
#[cfg(feature = "files")]
mod model;
#[cfg(feature = "files")]
mod names;
#[cfg(feature = "network")]
pub mod network;
mod order;
#[cfg(feature = "files")]
mod palette;
pub mod parallel;
pub mod points;
mod progress;
pub mod quantized;
#[cfg(feature = "reports")]
pub mod report;
#[cfg(feature = "search")]
pub mod search;
pub mod simd;
#[cfg(feature = "files")]
mod source;
#[cfg(feature = "train")]
pub mod train;
pub mod weights;

#[cfg(feature = "files")]
pub use self::{
    calibrate::{Calibration, Method, calibrate},
    compare::{CompareReport, Measured, TensorCompare, compare},
    convert::{DequantizeOptions, QuantizeOptions, Report, dequantize, quantize},
    inspect::{BARS, Summary, TensorSummary, ValueSummary, inspect},
    model::{Container, DType, Metadata, Model, Reading, Tensor},
    source::{Amount, Amounts},
};
#[cfg(feature = "clustering")]
pub use cluster::{KMeans, KMeansFit};
pub use error::Error;
#[cfg(feature = "files")]
pub use language::LanguageModel;
pub use progress::Progress;
pub use quantized::{Quantized, Quantizer};
#[cfg(feature = "search")]
pub use search::Index;
pub use weights::Weights;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The README's example, run as a test.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../../README.md")]
struct Readme;
