//! Palettes: weights as indices of 1 to 8 bits into int8 codebooks that k-means has chosen.
//!
//! A matrix is divided into groups of rows ([`IndexMatrix`]). A group has a scale, max|x| / 127, which maps its
//! values to the int8 grid of [`crate::quant::int8::symmetric`], and a codebook of 2^bits entries on the same grid.
//! The entries have the least possible (weighted) squared error ([`optimal_1d`]). A value is stored as the index of
//! the entry nearest to its code, and read as `fl(codebook[index] · scale)`.
//!
//! - [`encode`], [`decode`] and [`matvec`] process whole matrices. [`decode_row`] and [`dot`] process a row, from
//!   flash or a file, without scratch: they look up an entry when they use it.
//! - [`grid`], [`Counts`] and [`Coder`] are the steps of [`encode`], for engines that divide a group into tiles.
//!
//! Indices are packed from the lowest bit up, so that eight of them fill as many bytes as an index has bits. Rows
//! begin at whole bytes. Entries are in ascending order; if a group has fewer codes than entries, its largest entry
//! fills the rest.
//!
//! ```
//! use tercet_core::palette::{self, IndexMatrix, Output, Palette, Width};
//!
//! // Four rows of eight weights in one group: 2 bits each, four entries and a scale.
//! let weights: [f32; 32] = core::array::from_fn(|i| [0.5, -1.0, 0.1, 0.55][i * 7 % 4]);
//! let layout = IndexMatrix::new(Width::new(2)?, 4, 8, 1)?;
//! let (mut indices, mut codebook, mut scale) = ([0; 8], [0; 4], [0.0]);
//! let out = Output { indices: &mut indices, codebooks: &mut codebook, scales: &mut scale };
//! let mut scratch = [0; 200];
//! assert!(scratch.len() >= layout.scratch_len());
//! palette::encode(&layout, &weights, &[], out, &mut scratch)?;
//! assert_eq!(codebook, [-127, 13, 64, 70]);
//!
//! let palette = Palette { layout, indices: &indices, codebooks: &codebook, scales: &scale };
//! let mut y = [0.0; 4];
//! palette::matvec(&palette, &[1, 1, 1, 1, 1, 1, 1, 1], 1.0, &mut y)?;
//! assert!((y[0] - 0.3).abs() < 0.02);
//! # Ok::<(), palette::PaletteError>(())
//! ```

mod coder;
mod counts;
mod decode;
mod encode;
mod error;
mod layout;
mod optimal;
mod pack;

pub use coder::Coder;
pub use counts::Counts;
pub use decode::{MAX_DOT, Palette, Row, decode, decode_row, dot, matvec};
pub use encode::{Encoded, Output, check, encode, grid};
pub use error::PaletteError;
pub use layout::{IndexMatrix, Width};
pub use optimal::{MAX_WEIGHT, Optimum, optimal_1d, scratch_len};
