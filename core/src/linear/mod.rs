//! The linear layer for small machines: ternary, int4 and int8 weights times int8 activations.
//!
//! A [`Matrix`] borrows weights from flash, in one of the [`Layout`]s; a [`Layer`] adds a bias. Its product is exact.
//! It is returned as integers ([`sums`]), as f32 ([`matvec`]), or rounded once to int8 for the next layer
//! ([`dense`]). Processors with the DSP extension (Cortex-M4, M7, and M33 with the feature `dsp`) have their own
//! kernels, which return the same bits.
//!
//! ```
//! use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Requantize, Rescale, Table, dense, pack};
//!
//! // Two rows of three ternary weights, packed at build time or on a desktop.
//! const BYTES: usize = 128;
//! assert_eq!(Layout::TernaryLanes.bytes(2, 3)?, BYTES);
//! let mut bytes = [0; BYTES];
//! pack::ternary_lanes(2, 3, &[1, -1, 0, 0, 1, 1], &mut bytes)?;
//!
//! let weights = Matrix::new(Layout::TernaryLanes, 2, 3, &bytes)?;
//! let layer = Layer::new(weights).with_bias(Table::Words(&[4, -4]), 0)?;
//! let rescale = Rescale::one(Requantize::from_scale(0.5)?).with_relu();
//! let mut out = [0; 2];
//! let mut scratch = [0; Layout::TernaryLanes.scratch_len(2, 3)];
//! dense(&layer, &rescale, I8Sym::new(&[10, 20, -30])?, &mut out, &mut scratch)?;
//! // (10 − 20 + 4) / 2 and (20 − 30 − 4) / 2, no less than 0.
//! assert_eq!(out, [0, 0]);
//! # Ok::<(), tercet_core::linear::LinearError>(())
//! ```

mod error;
mod finish;
pub(crate) mod five_trits;
mod layer;
mod layout;
pub(crate) mod many;
mod matrix;
pub mod network;
pub mod pack;
pub(crate) mod product;
mod requantize;
mod sums;
mod sym;
mod table;

pub use error::LinearError;
pub use layer::{Layer, MAX_BIAS_SHIFT};
pub(crate) use layout::TABLE_ROWS;
pub use layout::{Layout, MAX_COLS};
pub use matrix::Matrix;
pub use product::{argmax, dense, matvec, row_sums, sums};
pub use requantize::{MAX_SHIFT, Requantize, Rescale};
pub(crate) use sums::Each;
pub use sums::Sums;
pub use sym::I8Sym;
pub use table::Table;

const fn expect(expected: usize, found: usize) -> Result<(), LinearError> {
    if expected == found {
        Ok(())
    } else {
        Err(LinearError::Length { expected, found })
    }
}
