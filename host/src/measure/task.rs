//! Computations of cases, in a form for engines with their own memory.

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

/// The computation of a case, with its input. Results are hashed in the order given for each.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Task<'a> {
    /// Codes, then a zero point per group (0 if the method has none), then a scale per group.
    Quantize {
        /// The tensor.
        values: Floats<'a>,
        /// Its groups.
        groups: Groups,
        /// The method; bins for the optimal rule are [`Task::BINS`].
        method: Method,
    },
    /// Codes of rows of activations, with as many columns as there are gains; then a scale per row.
    NormQuantize {
        /// The rows.
        values: &'a [f32],
        /// Their normalization.
        norm: Norm<'a>,
        /// Bits per code: 8 or 16.
        bits: u8,
    },
    /// The values of int8 codes, without zero points.
    Dequantize {
        /// The codes, and a scale per group.
        codes: Codes<'a>,
    },
    /// The mean of |x|, exact except for one rounding.
    Mean {
        /// The tensor.
        values: &'a [f32],
    },
    /// The buckets of a histogram of [`HOST_BITS`](tercet_core::quant::HOST_BITS).
    Histogram {
        /// The tensor.
        values: &'a [f32],
    },
    /// The codes of a tensor with a known scale.
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
        /// The palette.
        palette: Palette<'a>,
    },
    /// The product of a palette with activations.
    PaletteMatVec {
        /// The palette.
        palette: Palette<'a>,
        /// One activation per column.
        x: Vec<i8>,
        /// Their scale.
        x_scale: f32,
    },
    /// The bytes of blocks, with the rule's own scale.
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
        /// Number of their values.
        values: usize,
        /// The format.
        format: Format,
    },
    /// The product of blocks with activations.
    Dot {
        /// The blocks.
        bytes: &'a [u8],
        /// One activation per value.
        x: &'a [i8],
        /// Their scale.
        x_scale: f32,
        /// The format.
        format: Format,
    },
    /// Steps of Lloyd's loop from the first `clusters` points as centroids: labels, centroids, and the inertia of the
    /// last step. All steps are one run.
    Lloyd {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates per point.
        dims: usize,
        /// Number of clusters.
        clusters: usize,
        /// Number of steps.
        steps: u32,
    },
    /// Assignment of points to the nearest centroids: labels, then squared distances.
    Nearest {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates per point.
        dims: usize,
        /// The centroids, row-major.
        centroids: &'a [i8],
    },
    /// k-means++ as published, with [`tercet_core::number::Random`] and seed 1: labels, centroids, and a 0. All draws
    /// are one run.
    Seed {
        /// The points, row-major.
        points: &'a [i8],
        /// Coordinates per point.
        dims: usize,
        /// Number of clusters.
        clusters: usize,
    },
    /// The best `top` rows for each query: their indices, then their scores as values.
    Search {
        /// The rows and the queries.
        rows: Searched<'a>,
        /// The metric.
        metric: MetricKind,
        /// Number of rows for each query.
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
    /// Returns the floats of an array with one of the three types; `None` for another type.
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

/// Rows to search with their tables, and queries, stored one after another.
#[derive(Clone, Debug)]
pub enum Searched<'a> {
    /// Rows with one byte per value.
    Int8(Int8Rows<'a>, Vec<i8>),
    /// Rows with two bits per value.
    Ternary(TernaryRows<'a>, Vec<i8>),
    /// Rows of f32.
    Float(FloatRows<'a, f32>, Vec<f32>),
}
