//! The engine of rayon's threads: groups and blocks side by side, or one large group in tiles.
//!
//! Everything that crosses between tiles merges exactly (integer counts, exact sums, maxima) or in one order
//! (the runs of [`tercet_core::number::lanes`]), so the bits are those of [`tercet_core::scalar`] for any number of
//! threads and any size of tile. Work runs on the rayon pool
//! it is called in (`ThreadPool::install` chooses another).

mod activations;
mod blocks;
#[cfg(feature = "clustering")]
mod cluster;
mod compare;
mod dequantize;
pub(crate) mod each;
mod fp8;
mod histogram;
mod left_out;
mod linear;
mod matmat;
mod model;
pub(crate) mod palette;
mod rows;
#[cfg(feature = "search")]
mod search;
pub(crate) mod team;
mod tensor;
mod train;
mod two_bits;

pub(crate) use rows::Rows;

#[cfg(feature = "clustering")]
pub use cluster::Clusters;
pub use compare::compare;
#[cfg(feature = "search")]
pub use search::Base;
pub use tensor::Tensor;

use std::ops::RangeInclusive;

use tercet_core::block::{self, BlockError, Encoded, Format, i2_s};
use tercet_core::engine::{BlockEngine, Output, QuantizeEngine};
use tercet_core::number::{Element, Stats};
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Codes, Comparison, Groups, Histogram, QuantError, Rule, ScaleRule};

use crate::simd::Backend;

/// Values in a tile: large enough to drown the cost of a task, small enough to stay in a core's cache.
const TILE: usize = 1 << 16;

/// The engine.
///
/// # Example
/// ```
/// use tercet_core::engine::{Output, QuantizeEngine};
/// use tercet_core::quant::{Groups, Method};
/// use tercet_host::parallel::Threads;
///
/// let values = [0.5f32, -1.0, 2.0, 0.0];
/// let (mut codes, mut scales) = ([0; 4], [0.0; 1]);
/// let out = Output { codes: &mut codes, scales: &mut scales, zero_points: &mut [] };
/// let mut engine = Threads::default();
/// let tensor = engine.tensor(&values, Groups::tensor(4)?, out)?;
/// tensor.quantize(Method::Symmetric { limit: 127 })?;
/// assert_eq!(codes, [32, -64, 127, 0]);
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    tile: usize,
    backend: Backend,
    alone: bool,
}

/// With the backend that `TERCET_BACKEND` names, and with the best of this machine where it names none that runs here
/// ([`Backend::chosen`] says so).
impl Default for Threads {
    fn default() -> Self {
        Self {
            tile: TILE,
            backend: Backend::default(),
            alone: false,
        }
    }
}

impl Threads {
    /// The engine with tasks of `values` values, at least 1, instead of 65,536; it does not show in a bit.
    pub fn with_tile(values: usize) -> Self {
        Self {
            tile: values.max(1),
            ..Self::default()
        }
    }

    /// The engine on the calling thread alone, which no other is woken up for: the fastest where there is little to do.
    ///
    /// That holds for all operations but palettes, which go to all threads still. It does not show in a bit.
    ///
    /// ```
    /// use tercet_core::engine::BlockEngine;
    /// use tercet_core::block::Format;
    /// use tercet_host::parallel::Threads;
    ///
    /// let mut out = [0.0; 32];
    /// Threads::alone().decode_blocks(Format::Q8_0, &[0; 34], &mut out)?;
    /// # Ok::<(), tercet_core::block::BlockError>(())
    /// ```
    pub fn alone() -> Self {
        Self {
            alone: true,
            ..Self::default()
        }
    }

    /// Whether all work is the calling thread's.
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Values in a task: all of them where there is one thread.
    fn task(&self) -> usize {
        if self.alone {
            usize::MAX
        } else {
            team::tile(self.tile)
        }
    }

    /// Threads that work may be shared out to.
    pub(crate) fn threads(&self) -> usize {
        if self.alone {
            1
        } else {
            rayon::current_num_threads()
        }
    }

    /// Takes another backend; it does not show in a bit.
    pub const fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// The backend that its tasks use.
    pub const fn backend(&self) -> Backend {
        self.backend
    }
}

impl QuantizeEngine for Threads {
    type Error = QuantError;
    type Tensor<'a, T: Element> = Tensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Tensor<'a, T>, QuantError> {
        let tensor = Tensor::new(values, groups, out.codes, out.scales, out.zero_points)?;
        Ok(tensor.with_tile(self.task()).with_backend(self.backend))
    }

    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), QuantError> {
        histogram::count(self, values, histogram)
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        dequantize::dequantize(self, codes, range, out)
    }

    fn quantize_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), QuantError> {
        fp8::quantize_fp8(self, format, scale, values, out)
    }

    fn dequantize_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        fp8::dequantize_fp8(self, format, scale, codes, out)
    }

    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), QuantError> {
        activations::norm_quantize(self, x, norm, out, scales)
    }

    /// 512 KiB of memory besides.
    fn compare<A: Element, B: Element>(
        &mut self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        self.compare_runs([comparison], original, restored)
    }
}

impl BlockEngine for Threads {
    type Error = BlockError;

    fn encode_blocks<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        blocks::encode(self.backend, self.task(), format, rule, scale, values, out)
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), BlockError> {
        blocks::decode(self.backend, self.task(), format, bytes, out)
    }

    /// On the calling thread: one vector is too little to share out.
    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, BlockError> {
        let sum = self.backend.dot_blocks(format, bytes, x)?;
        Ok(block::fixed_to_f32(sum) * x_scale)
    }

    fn decode_i2_s(
        &mut self,
        layout: i2_s::Layout,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), BlockError> {
        two_bits::decode_i2_s(self, layout, bytes, out)
    }

    fn decode_bitnet_hf(
        &mut self,
        rows: usize,
        cols: usize,
        packed: &[u8],
        unit: f32,
        out: &mut [f32],
    ) -> Result<(), BlockError> {
        two_bits::decode_bitnet_hf(self, rows, cols, packed, unit, out)
    }

    fn encode_bitnet_hf<T: Element>(
        &mut self,
        rows: usize,
        cols: usize,
        weights: &[T],
        s: f32,
        out: &mut [u8],
    ) -> Result<(), BlockError> {
        two_bits::encode_bitnet_hf(self, rows, cols, weights, s, out)
    }
}

/// The statistics of two parts, the left one first.
pub(crate) fn merged(mut left: Stats, right: Stats) -> Stats {
    left.merge(&right);
    left
}

/// The error of a part that starts at value `start`, seen from the whole.
pub(crate) fn moved(error: QuantError, start: u64) -> QuantError {
    match error {
        QuantError::NotFinite { index } => QuantError::NotFinite {
            index: index + start,
        },
        QuantError::CodeRange { index } => QuantError::CodeRange {
            index: index + start,
        },
        other => other,
    }
}
