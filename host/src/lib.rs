#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(feature = "full"),
    allow(
        dead_code,
        unused_imports,
        reason = "what features share is used by those that are on; `full` uses all of it"
    )
)]

#[cfg(feature = "ndarray")]
pub mod arrays;
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
#[cfg(feature = "files")]
mod tensor_file;
#[cfg(feature = "candle")]
pub mod tensors;
#[cfg(feature = "train")]
pub mod train;
pub mod weights;

#[cfg(feature = "files")]
pub use self::{
    calibrate::{Calibration, calibrate},
    compare::{CompareReport, Measured, TensorCompare, compare},
    convert::{DequantizeOptions, QuantizeOptions, Report, dequantize, quantize},
    inspect::{BARS, Summary, TensorSummary, ValueSummary, inspect},
    source::{Amount, Amounts},
    tensor_file::{Container, DType, Metadata, Reading, Tensor, TensorFile},
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

/// The examples of the repository's README, run as tests.
#[cfg(all(doctest, feature = "files"))]
#[doc = include_str!("../../README.md")]
struct Readme;
