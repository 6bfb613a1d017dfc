//! Makes integer networks from float models, and runs them over whole data sets.
//!
//! [`build()`] quantizes the weights of dense layers and finds the scale of every layer's activations by running
//! recorded inputs through the integer layers before it. It returns a GGUF file that [`tercet_core::linear::network`]
//! runs from flash. [`NetworkFile`] runs such a file on the host, with the same bits. Both work on the engine that they
//! are given.
//!
//! ```
//! use tercet_core::linear::Layout;
//! use tercet_host::TensorFile;
//! use tercet_host::network::{BuildOptions, NetworkFile, build};
//! use tercet_host::parallel::Threads;
//! use tercet_host::points::{Points, Values};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("model.safetensors");
//! # let header = r#"{"head.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
//! # let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
//! # bytes.extend(header.as_bytes());
//! # bytes.extend([1.0f32, -1.0, -1.0, 1.0].iter().flat_map(|x| x.to_le_bytes()));
//! # std::fs::write(&path, bytes)?;
//! // A model of one layer, `head.weight` of 2 x 2: [[1, -1], [-1, 1]].
//! let model = TensorFile::open(&path)?;
//! let recorded = Points::new("recorded", 2, 2, Values::F32(vec![0.5, 2.0, -1.0, 0.25]))?;
//! let options = BuildOptions::new(vec!["head".parse()?], Layout::Int8);
//! let threads = &mut Threads::default();
//! let built = build(threads, &model, &options, &recorded, &())?;
//!
//! let network = NetworkFile::from_bytes("net.gguf", built.bytes)?;
//! assert_eq!(network.run(threads, &recorded)?.classes, [1, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activations;
mod bias;
mod build;
mod encode;
mod file;
mod options;
mod run;
mod tensors;

pub use build::{Built, LayerReport, build};
pub use options::{BuildOptions, LayerOptions};
pub use run::{Answers, NetworkFile};

/// Maximum number of layers of a network.
pub const MAX_LAYERS: usize = 64;

/// Maximum number of points that go through a layer together.
pub const BATCH: usize = 1024;
