//! The list of operations and their sizes.

use tercet_core::block::Format;
use tercet_core::linear::Layout;

use super::case::Entry;
use super::entries::{
    attentions, blocks, convert, int8_searches, matmat, matvec, matvecs, models, nearest, palettes,
    quantizers, searches, seed, step, wide,
};
use super::operation::search::TOP;

/// Columns of a matrix with a given size.
const COLS: usize = 4096;
/// Coordinates of a row to search, in a base with a given size.
const DIM: usize = 256;
/// Coordinates of a point, and number of clusters, in a set with a given size.
const POINT: usize = 64;
/// Queries that are searched together.
const QUERIES: usize = 64;

/// Positions that are attended to.
const POSITIONS: usize = 4096;

const MI: usize = 1 << 20;

/// Lists every operation. The inputs have about `size` values (rounded up to whole rows). Without `size` there is one
/// input that fits the caches and one that does not, and the shapes that others publish figures for.
pub fn catalogue(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let over = move |otherwise: &'static [usize]| sizes(size, otherwise).into_iter();
    over(&[MI, 96 * MI])
        .flat_map(quantizers)
        .chain(over(&[MI, 16 * MI]).flat_map(blocks))
        .chain(over(&[COLS * COLS]).flat_map(|values| matvecs(values / COLS, COLS)))
        .chain(layers(size))
        .chain(over(&[MI]).flat_map(|values| palettes(&[2, 4, 8], values / COLS, COLS)))
        .chain(clusters(size))
        .chain(rows_to_search(size))
        .chain(over(&[16 * MI]).flat_map(|values| convert(values / COLS, COLS)))
        .chain(models(size))
        .chain(attentions(
            size.map_or(POSITIONS, positions),
            size.is_none(),
        ))
}

/// Returns the given sizes, or the requested one in whole rows of [`COLS`].
fn sizes(size: Option<usize>, otherwise: &[usize]) -> Vec<usize> {
    match size {
        Some(size) => vec![size.next_multiple_of(8 * COLS).max(8 * COLS)],
        None => otherwise.to_vec(),
    }
}

/// Returns the positions of a small cache with about so many values of keys and values.
fn positions(size: usize) -> usize {
    (size / 256).clamp(64, POSITIONS)
}

/// Lists layers of other shapes, and with many vectors.
fn layers(size: Option<usize>) -> impl Iterator<Item = Entry> {
    // Data in memory, the classic table with short rows, and a square product.
    let shapes = size.is_none().then(|| {
        [
            matvec(Layout::Block(Format::Tq2_0), 65_536, 16_384),
            matvec(Layout::Int8, 100_000, 100),
            matvec(Layout::TernaryLanes, 100_000, 100),
            matmat(Layout::Int8, 2048, 2048, 2048),
        ]
    });
    // Vectors of a batch, in which there are few weights compared with activations, as in a prompt.
    let many = match size {
        Some(_) => 16,
        None => 128,
    };
    let batches = sizes(size, &[COLS * COLS])
        .into_iter()
        .flat_map(move |values| {
            [Layout::Block(Format::Tq2_0), Layout::Int8]
                .map(|layout| matmat(layout, values / COLS, COLS, many))
        });
    // As in a llama: a token, and a prompt.
    let of_16_bits = sizes(size, &[COLS * COLS])
        .into_iter()
        .flat_map(move |values| {
            let formats = [Format::Q8_0, Format::Q4_0, Format::Q4K, Format::Q6K];
            let counts = [1, many].into_iter();
            counts.flat_map(move |count| {
                formats.map(|format| wide(format, values / COLS, COLS, count))
            })
        });
    shapes
        .into_iter()
        .flatten()
        .chain(batches)
        .chain(of_16_bits)
}

fn clusters(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let shapes = match size {
        Some(size) => vec![[size.div_ceil(POINT).max(POINT), POINT, POINT]],
        None => vec![
            [10_000, 100, 10],
            [100_000, 64, 64],
            [100_000, 128, 256],
            [1_000_000, 32, 16],
            [32_000, 256, 256],
        ],
    };
    let seeded = shapes.get(shapes.len() / 4).copied();
    let others = seeded.into_iter();
    let others = others.flat_map(|shape| [seed(shape), nearest(shape)]);
    shapes.into_iter().map(step).chain(others)
}

fn rows_to_search(size: Option<usize>) -> impl Iterator<Item = Entry> {
    let shapes = match size {
        Some(size) => vec![(size.div_ceil(DIM).max(TOP), DIM)],
        None => vec![(100_000, 384), (1_000_000, 256)],
    };
    let one = shapes.clone().into_iter().flat_map(move |(rows, dim)| {
        // A GiB of floats shows nothing that the smaller set does not.
        let large = size.is_none() && rows * dim > 100_000_000;
        searches(rows, dim).filter(move |entry| !(large && entry.operation.contains("f32")))
    });
    let many = shapes.into_iter().take(1);
    one.chain(many.flat_map(|(rows, dim)| int8_searches(rows, dim, QUERIES)))
}
