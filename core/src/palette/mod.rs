//! Palettes: weights as indices of 1 to 8 bits into int8 codebooks, which k-means chose.
//!
//! A matrix falls into groups of rows ([`Layout`]). A group has a scale, max|x| / 127, which puts its values on the
//! int8 grid of [`crate::quant::int8::symmetric`], and a codebook of 2^bits entries on the same grid: those with the
//! least (weighted) squared error that there are ([`optimal_1d`]). A value is stored as the index of the entry
//! nearest to its code, and read as `fl(codebook[index] · scale)`.
//!
//! - [`encode`], [`decode`] and [`matvec`] work on whole matrices; [`decode_row`] and [`dot`] on a row, from flash or
//!   a file, with no scratch: an entry is looked up where it is used.
//! - [`grid`], [`Counts`] and [`Coder`] are the steps of [`encode`], for engines that cut a group into tiles.
//!
//! Indices are packed from the lowest bit up, so that eight of them fill as many bytes as an index has bits; rows
//! begin on whole bytes. Entries rise; where a group has fewer codes than entries, its largest fills the rest.
//!
//! ```
//! use tercet_core::palette::{self, Layout, Output, Palette, Width};
//!
//! // Four rows of eight weights in one group: 2 bits each, four entries and a scale.
//! let weights: [f32; 32] = core::array::from_fn(|i| [0.5, -1.0, 0.1, 0.55][i * 7 % 4]);
//! let layout = Layout::new(Width::new(2)?, 4, 8, 1)?;
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
pub use layout::{Layout, Width};
pub use optimal::{MAX_WEIGHT, Optimum, optimal_1d, scratch_len};
