//! The list of operations and their sizes.

use std::fmt;

use half::{bf16, f16};
use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::quant::Rule;
use tercet_core::search::MetricKind;

use super::clock::Clock;
use super::contender::Contender;
use super::operation::Operation;
use super::operation::blocks::{Decode, Dot, Encode};
use super::operation::cluster::{Lloyd, Seed, Shape};
use super::operation::compare::Compare;
use super::operation::convert::Convert;
use super::operation::linear::Product;
use super::operation::palette::{Coded, Part};
use super::operation::quantize::{
    Calibrate, Dequantize, DequantizeFp8, METHODS, Mean, Quantize, QuantizeFp8, halves,
};
use super::operation::search::{Search, Storage, TOP};
use super::size::words;
use super::task::Task;
use super::work::Work;
use crate::convert::Target;

/// Columns of a matrix that is made to a size.
const COLS: usize = 4096;
/// Coordinates of a row to search that is made to a size.
const DIM: usize = 256;
/// Coordinates of a point, and clusters, of a set that is made to a size.
const POINT: usize = 64;
/// Queries that are searched for together.
const QUERIES: usize = 64;

const MI: usize = 1 << 20;

/// An operation over an input of one size, ready to be run by any contender.
pub struct Case {
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// What it must do at least.
    pub work: Work,
    body: Box<dyn Operation>,
}

impl Case {
    /// Runs it in the rayon pool it is called in, which should have the contender's threads; `clock` decides how often.
    /// Gives a hash of what the last run wrote, which is the same for every contender.
    pub fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        self.body.run(by, clock)
    }

    /// What it does, for a [`super::Device`]; `None` where devices have no words for it.
    pub fn task(&self) -> Option<Task<'_>> {
        self.body.task()
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:?}", self.operation, self.size, self.work)
    }
}

/// A [`Case`] to be: its input may take hundreds of MB.
pub struct Entry {
    /// The area it belongs to, as the crates' modules name them: `quantize`, `block`, `linear`, `palette`, `cluster`, `search`,
    /// `convert`.
    pub area: &'static str,
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// The same in numbers: values; rows and columns; rows, columns and vectors; points, coordinates and clusters;
    /// rows, coordinates and queries.
    pub shape: Vec<usize>,
    make: Box<dyn Fn() -> (Work, Box<dyn Operation>)>,
}

impl Entry {
    fn new<O: Operation + 'static>(
        area: &'static str,
        operation: impl Into<String>,
        shape: &[usize],
        make: impl Fn() -> (Work, O) + 'static,
    ) -> Self {
        Self {
            area,
            operation: operation.into(),
            size: words(area, shape),
            shape: shape.to_vec(),
            make: Box::new(move || {
                let (work, body) = make();
                (work, Box::new(body))
            }),
        }
    }

    /// Makes the input.
    pub fn build(&self) -> Case {
        let (work, body) = (self.make)();
        Case {
            operation: self.operation.clone(),
            size: self.size.clone(),
            work,
            body,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.operation, self.size)
    }
}

/// Every operation, over inputs of about `size` values (rounded up to whole rows), or else over one input that caches hold and
/// one that they do not, and over the shapes that others publish figures for.
pub fn catalogue(size: Option<usize>) -> impl Iterator<Item = Entry> {
    quantizers(size)
        .chain(blocks(size))
        .chain(layers(size))
        .chain(palettes(size))
        .chain(clusters(size))
        .chain(searches(size))
        .chain(conversions(size))
}

/// The sizes given, or the one asked for in whole rows of [`COLS`].
fn sizes<const N: usize>(size: Option<usize>, otherwise: [usize; N]) -> Vec<usize> {
    match size {
        Some(size) => vec![size.next_multiple_of(8 * COLS).max(8 * COLS)],
        None => otherwise.to_vec(),
    }
}

fn quantizers(size: Option<usize>) -> impl Iterator<Item = Entry> {
    sizes(size, [MI, 96 * MI]).into_iter().flat_map(|values| {
        let mean = Entry::new("quantize", "exact mean", &[values], move || {
            Mean::new(values)
        });
        let methods = METHODS.into_iter().map(move |(name, method, rows)| {
            Entry::new("quantize", name, &[values], move || {
                Quantize::new(values, method, rows)
            })
        });
        let halves = [
            Entry::new("quantize", "int8 rows of f16", &[values], move || {
                halves(values, f16::from_f32)
            }),
            Entry::new("quantize", "int8 rows of bf16", &[values], move || {
                halves(values, bf16::from_f32)
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
        std::iter::once(mean).chain(methods).chain(halves)
    })
}

fn blocks(size: Option<usize>) -> impl Iterator<Item = Entry> {
    sizes(size, [MI, 16 * MI]).into_iter().flat_map(|values| {
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
    })
}

fn layers(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let every = sizes_of_layers(size).into_iter().flat_map(|values| {
        Layout::ALL
            .into_iter()
            .map(move |layout| layer(layout, values / COLS, COLS))
    });
    // From memory, the classic table of short rows, and a square product.
    let shapes = size.is_none().then(|| {
        [
            layer(Layout::Block(Format::Tq2_0), 65_536, 16_384),
            layer(Layout::Int8, 100_000, 100),
            layer(Layout::TernaryLanes, 100_000, 100),
            batch(Layout::Int8, 2048, 2048, 2048),
        ]
    });
    // Vectors of a batch: where weights are few beside activations, as in a prompt.
    let many = match size {
        Some(_) => 16,
        None => 128,
    };
    let batches = sizes_of_layers(size).into_iter().flat_map(move |values| {
        [Layout::Block(Format::Tq2_0), Layout::Int8]
            .map(|layout| batch(layout, values / COLS, COLS, many))
    });
    every.chain(shapes.into_iter().flatten()).chain(batches)
}

fn sizes_of_layers(size: Option<usize>) -> Vec<usize> {
    sizes(size, [COLS * COLS])
}

fn layer(layout: Layout, rows: usize, cols: usize) -> Entry {
    let name = format!("matvec {}", layout.name());
    Entry::new("linear", name, &[rows, cols], move || {
        Product::new(layout, rows, cols, 1)
    })
}

fn batch(layout: Layout, rows: usize, cols: usize, count: usize) -> Entry {
    let name = format!("matmat {}", layout.name());
    Entry::new("linear", name, &[rows, cols, count], move || {
        Product::new(layout, rows, cols, count)
    })
}

fn palettes(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let parts = [
        ("encode", Part::Encode),
        ("decode", Part::Decode),
        ("matvec", Part::MatVec),
    ];
    sizes(size, [MI]).into_iter().flat_map(move |values| {
        let rows = values / COLS;
        [2, 4, 8].into_iter().flat_map(move |bits| {
            parts.into_iter().map(move |(name, part)| {
                let name = format!("{name} palette:{bits}");
                Entry::new("palette", name, &[rows, COLS], move || {
                    Coded::new(part, bits, rows, COLS)
                })
            })
        })
    })
}

fn clusters(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let of = |points, dims, k| Shape { points, dims, k };
    let shapes = match size {
        Some(size) => vec![of(size.div_ceil(POINT).max(POINT), POINT, POINT)],
        None => vec![
            of(10_000, 100, 10),
            of(100_000, 64, 64),
            of(100_000, 128, 256),
            of(1_000_000, 32, 16),
            of(32_000, 256, 256),
        ],
    };
    let numbers = |Shape { points, dims, k }| [points, dims, k];
    let seeded = shapes.get(shapes.len() / 4).copied();
    let steps = shapes.into_iter().map(move |shape| {
        Entry::new("cluster", "k-means step", &numbers(shape), move || {
            Lloyd::new(shape)
        })
    });
    let seeds = seeded.into_iter().map(move |shape| {
        Entry::new("cluster", "k-means++ seed", &numbers(shape), move || {
            Seed::new(shape)
        })
    });
    steps.chain(seeds)
}

fn searches(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let shapes = match size {
        Some(size) => vec![(size.div_ceil(DIM).max(TOP), DIM)],
        None => vec![(100_000, 384), (1_000_000, 256)],
    };
    let kinds = [
        ("search int8 dot", Storage::Int8, MetricKind::Dot),
        ("search int8 cosine", Storage::Int8, MetricKind::Cosine),
        ("search ternary dot", Storage::Ternary, MetricKind::Dot),
        ("search f32 dot", Storage::Float, MetricKind::Dot),
    ];
    let one = shapes.clone().into_iter().flat_map(move |(rows, dim)| {
        kinds
            .into_iter()
            .filter_map(move |(name, storage, metric)| {
                // A GiB of floats says nothing that the smaller set does not.
                let large = size.is_none() && storage == Storage::Float && rows * dim > 100_000_000;
                let make = move || Search::new(storage, rows, dim, metric, 1);
                (!large).then(|| Entry::new("search", name, &[rows, dim], make))
            })
    });
    let many = shapes.into_iter().take(1).flat_map(move |(rows, dim)| {
        let kinds = kinds.into_iter().take(2);
        kinds.map(move |(name, storage, metric)| {
            let make = move || Search::new(storage, rows, dim, metric, QUERIES);
            Entry::new("search", name, &[rows, dim, QUERIES], make)
        })
    });
    one.chain(many)
}

fn conversions(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let targets = [Target::Blocks(Format::Tq2_0), Target::Int8];
    sizes(size, [16 * MI]).into_iter().flat_map(move |values| {
        let rows = values / COLS;
        targets.into_iter().map(move |target| {
            let name = format!("convert to {target}");
            Entry::new("convert", name, &[rows, COLS], move || {
                Convert::new(target, rows, COLS)
            })
        })
    })
}
