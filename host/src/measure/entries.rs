//! Each operation, over an input of the shape that is asked for: what [`super::catalogue`] lists at its sizes, and others at theirs.
//!
//! Inputs are made when an [`Entry`] is built. A shape that an operation cannot have (blocks that are not whole, no points) makes
//! [`Entry::build`] panic.

use half::{bf16, f16};
use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::quant::Rule;
use tercet_core::search::MetricKind;

use super::case::Entry;
use super::operation::activations::NormQuantize;
use super::operation::blocks::{Decode, Dot, Encode};
use super::operation::cluster::{Lloyd, Seed, Shape};
use super::operation::compare::Compare;
use super::operation::convert::Convert;
use super::operation::linear::Product;
use super::operation::palette::{Coded, Part};
use super::operation::quantize::{
    Calibrate, Dequantize, DequantizeFp8, METHODS, Mean, Quantize, QuantizeFp8, halves,
};
use super::operation::search::{Search, Storage};
use crate::convert::Target;

/// What is done to a tensor of so many values, a multiple of 1024, which is a row.
pub fn quantizers(values: usize) -> impl Iterator<Item = Entry> {
    let mean = Entry::new("quantize", "exact mean", &[values], move || {
        Mean::new(values)
    });
    let methods = METHODS.into_iter().map(move |(name, method, rows)| {
        Entry::new("quantize", name, &[values], move || {
            Quantize::new(values, method, rows)
        })
    });
    let others = [
        Entry::new("quantize", "int8 rows of f16", &[values], move || {
            halves(values, f16::from_f32)
        }),
        Entry::new("quantize", "int8 rows of bf16", &[values], move || {
            halves(values, bf16::from_f32)
        }),
        Entry::new("quantize", "norm and quantize a8", &[values], move || {
            NormQuantize::<i8>::new(values)
        }),
        Entry::new("quantize", "norm and quantize a16", &[values], move || {
            NormQuantize::<i16>::new(values)
        }),
        Entry::new("quantize", "dequantize int8", &[values], move || {
            Dequantize::new(values)
        }),
        Entry::new("quantize", "fp8 e4m3", &[values], move || {
            QuantizeFp8::new(values)
        }),
        Entry::new("quantize", "dequantize fp8 e4m3", &[values], move || {
            DequantizeFp8::new(values)
        }),
        Entry::new("quantize", "calibration histogram", &[values], move || {
            Calibrate::new(values)
        }),
        Entry::new("quantize", "compare", &[values], move || {
            Compare::new(values)
        }),
    ];
    std::iter::once(mean).chain(methods).chain(others)
}

/// Every format of blocks: encode, decode, dot; and the optimal rule's search of those that have one. Of so many values, a multiple
/// of 256.
pub fn blocks(values: usize) -> impl Iterator<Item = Entry> {
    let every = Format::ALL.into_iter().flat_map(move |format| {
        let name = |part| format!("{part} {}", format.name());
        [
            Entry::new("block", name("encode"), &[values], move || {
                Encode::new(values, format, Rule::AbsMax)
            }),
            Entry::new("block", name("decode"), &[values], move || {
                Decode::new(values, format)
            }),
            Entry::new("block", name("dot"), &[values], move || {
                Dot::new(values, format)
            }),
        ]
    });
    let optimal = [Format::Tq2_0, Format::Q2_0].map(|format| {
        let name = format!("encode {} optimal", format.name());
        Entry::new("block", name, &[values], move || {
            Encode::new(values, format, Rule::Optimal)
        })
    });
    every.chain(optimal)
}

/// A matrix of each layout times a vector.
pub fn matvecs(rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let layouts = Layout::ALL.into_iter();
    layouts.map(move |layout| matvec(layout, rows, cols))
}

/// A matrix times a vector. `cols` is a multiple of the layout's block.
pub fn matvec(layout: Layout, rows: usize, cols: usize) -> Entry {
    let name = format!("matvec {}", layout.name());
    Entry::new("linear", name, &[rows, cols], move || {
        Product::new(layout, rows, cols, 1)
    })
}

/// A matrix times `count` vectors. `cols` as for [`matvec`].
pub fn matmat(layout: Layout, rows: usize, cols: usize, count: usize) -> Entry {
    let name = format!("matmat {}", layout.name());
    Entry::new("linear", name, &[rows, cols, count], move || {
        Product::new(layout, rows, cols, count)
    })
}

/// A palette of each width (1 to 8 bits): encode, decode, matvec.
pub fn palettes(widths: &'static [u8], rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let parts = [
        ("encode", Part::Encode),
        ("decode", Part::Decode),
        ("matvec", Part::MatVec),
    ];
    widths.iter().flat_map(move |&bits| {
        parts.into_iter().map(move |(name, part)| {
            let name = format!("{name} palette:{bits}");
            Entry::new("palette", name, &[rows, cols], move || {
                Coded::new(part, bits, rows, cols)
            })
        })
    })
}

/// The first steps of Lloyd's loop: points, coordinates, clusters, of which there are no more than points.
pub fn step([points, dims, k]: [usize; 3]) -> Entry {
    Entry::new("cluster", "k-means step", &[points, dims, k], move || {
        Lloyd::new(Shape { points, dims, k })
    })
}

/// k-means++: as [`step`].
pub fn seed([points, dims, k]: [usize; 3]) -> Entry {
    Entry::new("cluster", "k-means++ seed", &[points, dims, k], move || {
        Seed::new(Shape { points, dims, k })
    })
}

const INT8_SEARCHES: [(&str, Storage, MetricKind); 2] = [
    ("search int8 dot", Storage::Int8, MetricKind::Dot),
    ("search int8 cosine", Storage::Int8, MetricKind::Cosine),
];

/// The best rows for one query, ten, of at least as many.
pub fn searches(rows: usize, dim: usize) -> impl Iterator<Item = Entry> {
    let others = [
        ("search ternary dot", Storage::Ternary, MetricKind::Dot),
        ("search f32 dot", Storage::Float, MetricKind::Dot),
    ];
    let kinds = INT8_SEARCHES.into_iter().chain(others);
    kinds.map(move |(name, storage, metric)| {
        Entry::new("search", name, &[rows, dim], move || {
            Search::new(storage, rows, dim, metric, 1)
        })
    })
}

/// The same for each of so many queries, in rows of int8 codes.
pub fn int8_searches(rows: usize, dim: usize, queries: usize) -> impl Iterator<Item = Entry> {
    let kinds = INT8_SEARCHES.into_iter();
    kinds.map(move |(name, storage, metric)| {
        Entry::new("search", name, &[rows, dim, queries], move || {
            Search::new(storage, rows, dim, metric, queries)
        })
    })
}

/// The conversion of a tensor, in memory. `cols` is a multiple of 256.
pub fn convert(rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let targets = [Target::Blocks(Format::Tq2_0), Target::Int8];
    targets.into_iter().map(move |target| {
        let name = format!("convert to {target}");
        Entry::new("convert", name, &[rows, cols], move || {
            Convert::new(target, rows, cols)
        })
    })
}
