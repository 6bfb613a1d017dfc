//! Layers: a set's kernels for rows times a vector and for tiles.

mod activations;
mod batch;
mod codes;
pub(in crate::simd) mod half_planes;
pub(crate) mod half_product;
pub(crate) mod half_tiles;
pub(in crate::simd) mod halves;
pub(in crate::simd) mod lanes;
pub(crate) mod product;
mod tiles;

use tercet_core::block::Format;
use tercet_core::linear::Layout;

pub(in crate::simd) use activations::{Activations, Line, Start};
pub(in crate::simd) use codes::unpack;
pub(in crate::simd) use halves::{HalfRows, LineRows};
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
pub(in crate::simd) use tiles::word;
pub(in crate::simd) use tiles::{
    Group, Multiply, Order, STRIP, Scales, Sums as TileSums, Tiles, Word, add,
};
pub(crate) use tiles::{PanelSums, Panels, ROWS, Strips};

/// Rows whose sums a kernel returns at once: whole groups of every layout.
const CHUNK: usize = 64;

/// The layer functions of one instruction set.
#[derive(Debug)]
pub(in crate::simd) struct Linear {
    /// Rows of a layout times a vector; `None` if core does the work.
    pub(in crate::simd) vector: fn(Layout) -> Option<Vector>,
    /// Rows of blocks times 16-bit activations; `None` if both planes of these are multiplied.
    pub(in crate::simd) halves: fn(Format) -> Option<HalfRows>,
    /// The same for many rows of activations.
    pub(in crate::simd) half_tiles: fn(Format) -> Option<half_tiles::HalfTiles>,
    /// Many rows of activations at once.
    pub(in crate::simd) tiles: Option<Tiles>,
}

/// The core's loops.
pub(in crate::simd) const SCALAR: Linear = Linear {
    vector: |_| None,
    halves: halves::none,
    half_tiles: half_tiles::none,
    tiles: None,
};

/// The functions of one instruction set for a layout's rows times a vector.
///
/// The functions may use that set, so they are called through [`product::Product`], which a [`Backend`](super::Backend)
/// gives access to.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Vector {
    /// Brings activations into the order for `rows`.
    pub(in crate::simd) prepare: unsafe fn(&[i8], &mut Activations),
    pub(in crate::simd) rows: Rows,
}

/// Computes the sums of the rows in the bytes; there are as many rows as sums, at most [`CHUNK`].
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) enum Rows {
    /// For layouts whose sums fit 32 bits.
    Narrow(NarrowRows),
    /// For blocks.
    Wide(WideRows),
}

pub(in crate::simd) type NarrowRows = unsafe fn(&[u8], &Activations, &mut [i32]);
pub(in crate::simd) type WideRows = unsafe fn(&[u8], &Activations, &mut [i64]);
