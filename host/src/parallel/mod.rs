//! The engine of rayon's threads: processes groups and blocks in parallel, or one large group in tiles.
//!
//! All results of tiles are merged exactly (integer counts, exact sums, maxima) or in a fixed order (the runs of
//! [`tercet_core::number::lanes`]). So the bits are those of [`tercet_core::scalar`] for any number of threads and any
//! tile size. Work runs on the current rayon pool (`ThreadPool::install` chooses another).

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

/// Values per tile: large enough to hide the cost of a task, small enough to stay in a core's cache.
const TILE: usize = 1 << 16;

/// The engine of rayon's threads.
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

/// With the backend that `TERCET_BACKEND` names, or with the best of this machine if the variable names none that runs
/// here ([`Backend::chosen`] reports that).
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
    /// Returns the engine with tasks of `values` values, at least 1, instead of 65,536; no bit depends on it.
    pub fn with_tile(values: usize) -> Self {
        Self {
            tile: values.max(1),
            ..Self::default()
        }
    }

    /// Returns the engine on the calling thread only. It wakes no other thread, so it is the fastest for small work.
    ///
    /// This applies to all operations except palettes, which still use all threads. No bit depends on it.
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

    /// True if the calling thread does all work.
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Returns the values per task: all of them if there is one thread.
    fn task(&self) -> usize {
        if self.alone {
            usize::MAX
        } else {
            team::tile(self.tile)
        }
    }

    /// Returns the number of threads that may share work.
    pub(crate) fn threads(&self) -> usize {
        if self.alone {
            1
        } else {
            rayon::current_num_threads()
        }
    }

    /// Returns the engine with another backend; no bit depends on it.
    pub const fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Returns the backend of its tasks.
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

    /// Takes 512 KiB of additional memory.
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

    /// On the calling thread: one vector is too little to share.
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
        layout: i2_s::Interleave,
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

/// Returns the statistics of two parts, the left one first.
pub(crate) fn merged(mut left: Stats, right: Stats) -> Stats {
    left.merge(&right);
    left
}

/// Converts the error of a part that starts at value `start` to one of the whole.
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
