//! All operations over inputs of any shape: [`super::catalogue`] lists them at its sizes, and others can use their own.
//!
//! Inputs are made when an [`Entry`] is built. If an operation cannot have a shape (blocks that are not whole, no
//! points), [`Entry::build`] panics.

use half::{bf16, f16};
use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::model::CacheType;
use tercet_core::quant::{Groups, Method, Rule};
use tercet_core::search::MetricKind;

use super::case::Entry;
use super::operation::activations::NormQuantize;
use super::operation::attention::{Attention, Sizes};
use super::operation::blocks::{Decode, Dot, Encode};
use super::operation::cluster::{Lloyd, Nearest, STEPS, Seed, Shape};
use super::operation::compare::Compare;
use super::operation::convert::Convert;
use super::operation::linear::Product;
use super::operation::model::{Model, Part};
use super::operation::palette::{Coded, PaletteStep};
use super::operation::quantize::{
    Calibrate, Dequantize, DequantizeFp8, METHODS, Mean, Quantize, QuantizeFp8, ROW, halves,
};
pub use super::operation::search::TOP;
use super::operation::search::{Search, Storage};
use crate::convert::Target;
use crate::language::{Architecture, Extras, Parameters, Role};

/// Lists the operations on a tensor of so many values, a multiple of 1024, which is a row.
pub fn quantizers(values: usize) -> impl Iterator<Item = Entry> {
    let tensor = Groups {
        count: 1,
        len: values,
    };
    let rows = Groups {
        count: values / ROW,
        len: ROW,
    };
    let mean = Entry::new("quantize", "exact mean", &[values], move || {
        Mean::new(values)
    });
    let methods = METHODS.into_iter().map(move |(name, method, by_row)| {
        quantize(name, if by_row { rows } else { tensor }, method)
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
        dequantize(tensor),
        Entry::new("quantize", "fp8 e4m3", &[values], move || {
            QuantizeFp8::new(values)
        }),
        Entry::new("quantize", "dequantize fp8 e4m3", &[values], move || {
            DequantizeFp8::new(values)
        }),
        histogram(values),
        Entry::new("quantize", "compare", &[values], move || {
            Compare::new(values)
        }),
    ];
    std::iter::once(mean).chain(methods).chain(others)
}

/// Returns quantizing a tensor in groups to codes, with this name.
pub fn quantize(name: &'static str, groups: Groups, method: Method) -> Entry {
    let values = groups.count * groups.len;
    Entry::new("quantize", name, &[values], move || {
        Quantize::new(groups, method)
    })
}

/// Returns converting int8 codes in groups back to values.
pub fn dequantize(groups: Groups) -> Entry {
    let values = groups.count * groups.len;
    Entry::new("quantize", "dequantize int8", &[values], move || {
        Dequantize::new(groups)
    })
}

/// Returns counting the histogram of calibration.
pub fn histogram(values: usize) -> Entry {
    Entry::new("quantize", "calibration histogram", &[values], move || {
        Calibrate::new(values)
    })
}

/// Lists for every block format encode, if there is an encoder, decode, and dot; and the search of the optimal rule for
/// formats that have it. The number of values is a multiple of 256.
pub fn blocks(values: usize) -> impl Iterator<Item = Entry> {
    let every = Format::ALL.into_iter().flat_map(move |format| {
        let name = format!("dot {}", format.name());
        let dot = Entry::new("block", name, &[values], move || Dot::new(values, format));
        let encode = format.can_encode().then(|| encode(format, values));
        encode.into_iter().chain([decode(format, values), dot])
    });
    let optimal = [Format::Tq2_0, Format::Q2_0].map(|format| {
        let name = format!("encode {} optimal", format.name());
        Entry::new("block", name, &[values], move || {
            Encode::new(values, format, Rule::Optimal)
        })
    });
    every.chain(optimal)
}

/// Returns encoding values into whole blocks.
pub fn encode(format: Format, values: usize) -> Entry {
    let name = format!("encode {}", format.name());
    Entry::new("block", name, &[values], move || {
        Encode::new(values, format, Rule::AbsMax)
    })
}

/// Returns decoding whole blocks.
pub fn decode(format: Format, values: usize) -> Entry {
    let name = format!("decode {}", format.name());
    Entry::new("block", name, &[values], move || {
        Decode::new(values, format)
    })
}

/// Lists a matrix of each layout times a vector.
pub fn matvecs(rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let layouts = Layout::ALL.into_iter();
    layouts.map(move |layout| matvec(layout, rows, cols))
}

/// Returns a matrix times a vector. `cols` is a multiple of the layout's block.
pub fn matvec(layout: Layout, rows: usize, cols: usize) -> Entry {
    let name = format!("matvec {}", layout.name());
    Entry::new("linear", name, &[rows, cols], move || {
        Product::new(layout, rows, cols, 1)
    })
}

/// Returns a matrix times `count` vectors. `cols` as for [`matvec`].
pub fn matmat(layout: Layout, rows: usize, cols: usize, count: usize) -> Entry {
    let name = format!("matmat {}", layout.name());
    Entry::new("linear", name, &[rows, cols, count], move || {
        Product::new(layout, rows, cols, count)
    })
}

/// Returns blocks times `count` vectors of 16 bits, which count as two of 8. `cols` as for [`matvec`].
pub fn wide(format: Format, rows: usize, cols: usize, count: usize) -> Entry {
    let (name, size): (_, &[usize]) = match count {
        1 => ("matvec", &[rows, cols]),
        _ => ("matmat", &[rows, cols, count]),
    };
    let name = format!("{name} a16 {}", format.name());
    Entry::new("linear", name, size, move || {
        Product::wide(format, rows, cols, count)
    })
}

/// Lists for a palette of each width (1 to 8 bits) encode, decode, matvec.
pub fn palettes(widths: &'static [u8], rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let parts = [
        ("encode", PaletteStep::Encode),
        ("decode", PaletteStep::Decode),
        ("matvec", PaletteStep::MatVec),
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

/// Returns the first eight steps of Lloyd's loop. The shape is points, coordinates, clusters; there are at most as many
/// clusters as points.
pub fn step(shape: [usize; 3]) -> Entry {
    steps(shape, STEPS)
}

/// As [`step`], with so many steps.
pub fn steps([points, dims, k]: [usize; 3], steps: u32) -> Entry {
    Entry::new("cluster", "k-means step", &[points, dims, k], move || {
        Lloyd::new(Shape { points, dims, k }, steps)
    })
}

/// Returns assigning points to the nearest of centroids. The shape is points, coordinates, centroids.
pub fn nearest([points, dims, k]: [usize; 3]) -> Entry {
    Entry::new("cluster", "nearest", &[points, dims, k], move || {
        Nearest::new(Shape { points, dims, k })
    })
}

/// Returns k-means++ seeding, with a shape as for [`step`].
pub fn seed([points, dims, k]: [usize; 3]) -> Entry {
    Entry::new("cluster", "k-means++ seed", &[points, dims, k], move || {
        Seed::new(Shape { points, dims, k })
    })
}

const INT8_SEARCHES: [(&str, Storage, MetricKind); 2] = [
    ("search int8 dot", Storage::Int8, MetricKind::Dot),
    ("search int8 cosine", Storage::Int8, MetricKind::Cosine),
];

/// Lists searches for the best rows for one query, [`TOP`] of at least as many.
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

/// Returns the same for each of so many queries, in rows of int8 codes by their dot product.
pub fn int8_search(rows: usize, dim: usize, queries: usize) -> Entry {
    let [(name, storage, metric), _] = INT8_SEARCHES;
    Entry::new("search", name, &[rows, dim, queries], move || {
        Search::new(storage, rows, dim, metric, queries)
    })
}

/// Lists the same for each metric that has its own kernels.
pub fn int8_searches(rows: usize, dim: usize, queries: usize) -> impl Iterator<Item = Entry> {
    let kinds = INT8_SEARCHES.into_iter();
    kinds.map(move |(name, storage, metric)| {
        Entry::new("search", name, &[rows, dim, queries], move || {
            Search::new(storage, rows, dim, metric, queries)
        })
    })
}

/// Lists the conversions of a tensor, in memory. `cols` is a multiple of 256.
pub fn convert(rows: usize, cols: usize) -> impl Iterator<Item = Entry> {
    let targets = [Target::Blocks(Format::Tq2_0), Target::Int8];
    targets.into_iter().map(move |target| {
        let name = format!("convert to {target}");
        Entry::new("convert", name, &[rows, cols], move || {
            Convert::new(target, rows, cols)
        })
    })
}

/// The shape of BitNet b1.58 2B-4T, with so many of its 30 layers.
const fn b1_58_2b(layers: u32) -> Parameters {
    Parameters {
        architecture: Architecture::Bitnet,
        context_length: 4096,
        embedding_length: 2560,
        block_count: layers,
        feed_forward_length: 6912,
        head_count: 20,
        head_count_kv: 5,
        head_length: 128,
        vocab_size: 128_256,
        rms_epsilon: 1e-5,
        rope_base: 500_000.0,
        rope_factor: None,
    }
}

/// Returns the shape of a small model, with layers of about so many weights in all.
fn small(weights: usize) -> Parameters {
    let one = Parameters {
        embedding_length: 256,
        block_count: 1,
        feed_forward_length: 512,
        head_count: 4,
        head_count_kv: 2,
        head_length: 64,
        vocab_size: 512,
        ..b1_58_2b(1)
    };
    let layers = weights.div_ceil(in_layers(&one)).max(1);
    Parameters {
        block_count: u32::try_from(layers).unwrap_or(u32::MAX),
        ..one
    }
}

/// Returns the number of weights of a model's layers.
fn in_layers(parameters: &Parameters) -> usize {
    let slots = parameters.tensors(Extras::default());
    let matrices = slots.iter().filter(|slot| slot.role == Role::Matrix);
    matrices.map(|slot| slot.values()).sum()
}

/// Lists a ternary language model's prompt, its next token, and the next token of each of 16 texts, in models of random
/// weights: with about so many in the layers, or layers of BitNet b1.58 2B-4T, of which a token reads 6 from memory and a
/// prompt passes 1; the head is whole.
pub fn models(weights: Option<usize>) -> impl Iterator<Item = Entry> {
    let shape = move |layers| weights.map_or(b1_58_2b(layers), small);
    let prompt = if weights.is_some() { 16 } else { 128 };
    [
        ("model prompt tq2_0", 1, prompt, Part::Prompt(prompt)),
        ("model decode tq2_0", 6, 1, Part::Decode(1)),
        ("model decode tq2_0 of 16 texts", 6, 16, Part::Decode(16)),
    ]
    .into_iter()
    .map(move |(name, layers, tokens, part)| {
        let parameters = shape(layers);
        Entry::new(
            "model",
            name,
            &[in_layers(&parameters), tokens],
            move || Model::new(parameters, part),
        )
    })
}

/// Lists attention of one token, over so many positions of a cache of each type that has its own kernels: one layer with
/// heads as in a small model, or 30 as in BitNet b1.58 2B-4T. The time is a layer's.
pub fn attentions(positions: usize, large: bool) -> impl Iterator<Item = Entry> {
    let sizes = Sizes {
        positions,
        layers: if large { 30 } else { 1 },
        group: if large { 4 } else { 2 },
        kv_heads: if large { 5 } else { 2 },
        head: if large { 128 } else { 64 },
    };
    let kinds = [
        ("attention int8", CacheType::Int8),
        ("attention int16-8", CacheType::Int16Int8),
        ("attention int16", CacheType::Int16),
    ];
    kinds.into_iter().map(move |(name, kind)| {
        let width = sizes.kv_heads * sizes.head;
        Entry::new("attention", name, &[positions, width], move || {
            Attention::new(kind, sizes)
        })
    })
}
