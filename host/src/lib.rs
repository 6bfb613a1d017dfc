//! Tercet on a desktop: real model files in, quantized files out.
//!
//! [`Model::open`] maps a safetensors, npy or GGUF file; [`quantize`] writes it in another format, with every core
//! busy and memory bounded; [`dequantize`] goes back, [`inspect`], [`compare`] and [`calibrate`] look.
//! [`search`] finds the nearest rows of a matrix.
//! All numbers come from [`tercet_core`]: the number of threads and the size of the tiles do not show in a bit, nor does the
//! engine that these flows run on, which [`engine`] says how to choose.
//!
//! ```
//! use tercet_host::convert::{DequantizeOptions, FloatType, Target};
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
//! let report = quantize(&model, &QuantizeOptions::new(Target::Tq2_0), &output, &())?;
//! assert_eq!((report.tensors[0].to.as_str(), report.bits_per_weight), ("tq2_0", 2.0625));
//! assert!(report.tensors[0].relative_error.unwrap() < 0.3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibrate;
pub mod cluster;
mod compare;
pub mod conformance;
pub mod convert;
mod dtype;
pub mod engine;
mod error;
pub mod file;
mod floats;
mod inspect;
pub mod linear;
pub mod measure;
mod model;
mod names;
pub mod network;
mod order;
mod palette;
pub mod parallel;
pub mod points;
mod progress;
pub mod report;
pub mod search;
pub mod simd;
mod source;

pub use calibrate::{Calibration, Method, calibrate, calibrate_with};
pub use compare::{CompareReport, Measured, TensorCompare, compare, compare_with};
pub use convert::{
    DequantizeOptions, QuantizeOptions, Report, dequantize, dequantize_with, quantize,
    quantize_with,
};
pub use error::Error;
pub use inspect::{BARS, Summary, TensorSummary, ValueSummary, inspect, inspect_with};
pub use model::{Container, DType, Metadata, Model, Reading, Tensor};
pub use progress::Progress;
pub use source::{Amount, Amounts};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The README's example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
