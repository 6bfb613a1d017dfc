//! What cases compute, in words that engines with memory of their own understand.

use std::any::Any;
use std::sync::Arc;

use half::{bf16, f16};
use tercet_core::block::Format;
use tercet_core::linear::Layer;
use tercet_core::palette::Palette;
use tercet_core::quant::activations::Norm;
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Codes, Groups, Method, Rule};
use tercet_core::search::{FloatRows, Int8Rows, MetricKind, TernaryRows};

/// What a case computes, with its input; results are hashed as each says, in that order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Task<'a> {
    /// Codes, then a zero point a group (0 where the method has none), then a scale a group.
    Quantize {
        /// The tensor.
        values: Floats<'a>,
        /// How it falls into groups.
        groups: Groups,
        /// The method; bins for the optimal rule are [`Task::BINS`].
        method: Method,
    },
    /// Codes of rows of activations, as many columns as there are gains; then a scale a row.
    NormQuantize {
        /// The rows.
        values: &'a [f32],
        /// What they are normalized with.
        norm: Norm<'a>,
        /// Bits of a code: 8 or 16.
        bits: u8,
    },
    /// The values of int8 codes, without zero points.
    Dequantize {
        /// The codes, and a scale a group.
        codes: Codes<'a>,
    },
    /// The mean of |x|, exact but for one rounding.
    Mean {
        /// The tensor.
        values: &'a [f32],
    },
    /// The buckets of a histogram of [`HOST_BITS`](tercet_core::quant::HOST_BITS).
    Histogram {
        /// The tensor.
        values: &'a [f32],
    },
    /// The codes of a tensor whose scale is known.
    QuantizeFp8 {
        /// The tensor.
        values: &'a [f32],
        /// The format.
        format: Fp8,
        /// The scale.
        scale: f32,
    },
    /// The values of such codes.
    DequantizeFp8 {
        /// The codes.
        codes: &'a [u8],
        /// Their format.
        format: Fp8,
        /// Their scale.
        scale: f32,
    },
    /// The values of a palette.
    PaletteDecode {
        /// It.
        palette: Palette<'a>,
    },
    /// The product of a palette with activations.
    PaletteMatVec {
        /// It.
        palette: Palette<'a>,
        /// An activation a column.
        x: Vec<i8>,
        /// Their scale.
        x_scale: f32,
    },
    /// The bytes of blocks, by the rule's own scale.
    Encode {
        /// The values.
        values: &'a [f32],
        /// The format.
        format: Format,
        /// The rule.
        rule: Rule,
    },
    /// The values of blocks.
    Decode {
        /// The blocks.
        bytes: &'a [u8],
        /// How many values they have.
        values: usize,
        /// The format.
        format: Format,
    },
    /// The product of blocks with activations.
    Dot {
        /// The blocks.
        bytes: &'a [u8],
        /// An activation a value.
        x: &'a [i8],
        /// Their scale.
        x_scale: f32,
        /// The format.
        format: Format,
    },
    /// Steps of Lloyd's loop from the first `clusters` points as centroids: labels, centroids, and the inertia that the last step
    /// found. All steps are one run.
    Lloyd {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates of a point.
        dims: usize,
        /// How many clusters.
        clusters: usize,
        /// How many steps.
        steps: u32,
    },
    /// Points to the nearest centroids: labels, then squared distances.
    Nearest {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates of a point.
        dims: usize,
        /// The centroids, row-major.
        centroids: &'a [i8],
    },
    /// k-means++ as published, from [`tercet_core::number::Random`] of seed 1: labels, centroids, and a 0. All draws are one run.
    Seed {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates of a point.
        dims: usize,
        /// How many clusters.
        clusters: usize,
    },
    /// The best `top` rows for each query: their indices, then their scores as values.
    Search {
        /// The rows and the queries.
        rows: Searched<'a>,
        /// What near means.
        metric: MetricKind,
        /// How many rows for each query.
        top: usize,
    },
    /// A layer times rows of activations, in f32.
    Product {
        /// The layer.
        layer: Layer<'a>,
        /// Rows of activations.
        x: &'a [i8],
        /// The scale of each row.
        scales: Vec<f32>,
    },
}

impl Task<'_> {
    /// Bins for the optimal ternary rule: 64 KiB.
    pub const BINS: usize = 4096;
}

/// Floats of one of three types.
#[derive(Clone, Copy, Debug)]
pub enum Floats<'a> {
    /// 32 bits.
    F32(&'a [f32]),
    /// IEEE's 16 bits.
    F16(&'a [f16]),
    /// f32's upper 16 bits.
    Bf16(&'a [bf16]),
}

impl<'a> Floats<'a> {
    /// Those that an array of one of the three types holds; `None` of another.
    pub(super) fn of<T: 'static>(values: &'a Arc<[T]>) -> Option<Self> {
        let any: &dyn Any = values;
        if let Some(values) = any.downcast_ref::<Arc<[f32]>>() {
            return Some(Self::F32(values));
        }
        if let Some(values) = any.downcast_ref::<Arc<[f16]>>() {
            return Some(Self::F16(values));
        }
        let values = any.downcast_ref::<Arc<[bf16]>>();
        values.map(|values| Self::Bf16(values))
    }
}

/// Rows to search with their tables beside them, and queries that lie one after another.
#[derive(Clone, Debug)]
pub enum Searched<'a> {
    /// Rows of a byte a value.
    Int8(Int8Rows<'a>, Vec<i8>),
    /// Rows of two bits a value.
    Ternary(TernaryRows<'a>, Vec<i8>),
    /// Rows of f32.
    Float(FloatRows<'a, f32>, Vec<f32>),
}
