//! Products of layers by the kernels of every instruction set: the core's bits.

use proptest::prelude::*;
use tercet_core::block::Format;
use tercet_core::engine::{LinearEngine, ModelEngine};
use tercet_core::linear::{
    I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale, Table, pack,
};
use tercet_core::number::Random;
use tercet_core::quant::activations;
use tercet_core::quant::{Groups, Method, QuantError, quantize};
use tercet_core::scalar::{Scalar, Tensor};
use tercet_host::linear::{ProductError, matmat};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// Fills sums, floats and activations, given scratch.
type Products<'a> = dyn FnMut(&mut [i64], &mut [f32], &mut [i8], &mut [u32]) + 'a;

/// What weights and activations are.
#[derive(Clone, Copy, Debug)]
enum Values {
    Random,
    Lowest,
    Highest,
    /// −1 to 1, as in a ternary matrix by columns; blocks with one scale.
    Ternary,
    /// The same, but for the last weight, which is 2, or the last block.
    Almost,
}

const VALUES: [Values; 3] = [Values::Random, Values::Lowest, Values::Highest];

/// A matrix's bytes, at an odd address.
fn weights(layout: Layout, rows: usize, cols: usize, values: Values, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = vec![0; 1 + layout.bytes(rows, cols).unwrap()];
    match layout {
        Layout::Block(format) => {
            for block in bytes[1..].chunks_exact_mut(format.bytes()) {
                fill(format, block, values, &mut random);
            }
            if let Values::Almost = values {
                let last = bytes.len() - format.bytes();
                fill(format, &mut bytes[last..], Values::Random, &mut random);
            }
        }
        _ => {
            let (lowest, highest) = layout.codes();
            let mut code = || match values {
                Values::Lowest => lowest,
                Values::Highest => highest,
                Values::Ternary | Values::Almost => random.below(3) as i8 - 1,
                Values::Random => {
                    let span = (i64::from(highest) - i64::from(lowest) + 1) as u64;
                    (i64::from(lowest) + random.below(span) as i64) as i8
                }
            };
            let mut codes: Vec<i8> = (0..rows * cols).map(|_| code()).collect();
            if let (Values::Almost, Some(last)) = (values, codes.last_mut()) {
                *last = 2;
            }
            pack::pack(layout, rows, cols, &codes, &mut bytes[1..]).unwrap();
        }
    }
    bytes
}

/// A block of any bits, and a finite scale and minimum: of either sign, subnormal, zero, or large.
fn fill(format: Format, block: &mut [u8], values: Values, random: &mut Random) {
    for byte in block.iter_mut() {
        *byte = match values {
            Values::Random | Values::Ternary | Values::Almost => random.next_u64() as u8,
            Values::Lowest if format == Format::Q8_0 => 0x80,
            Values::Lowest => 0,
            Values::Highest if format == Format::Q8_0 => 0x7F,
            Values::Highest => 0xFF,
        };
    }
    if format == Format::Q6K && !matches!(values, Values::Random) {
        // The factors of the parts, which have a sign.
        let lowest = matches!(values, Values::Lowest);
        block[192..208].fill(if lowest { 0x80 } else { 0x7F });
    }
    // Parts multiply what is stored by up to 2⁷: so much less is left for that.
    let (below, largest) = match format.parts() {
        1 => (0x77FF, 0x6BFF),
        _ => (0x53FF, 0x4BFF),
    };
    for at in [Some(format.scale_offset()), format.min_offset()]
        .into_iter()
        .flatten()
    {
        let bits = match values {
            // Below 2¹² in magnitude, or 2⁶.
            Values::Ternary | Values::Almost => 0x2E66,
            Values::Random => {
                (random.next_u64() as u16) & below | (random.next_u64() as u16) & 0x8000
            }
            Values::Lowest => largest,
            Values::Highest => largest | 0x8000,
        };
        block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
    }
}

fn activations(len: usize, values: Values, seed: u64) -> Vec<i8> {
    let mut random = Random::new(seed);
    let mut value = || match values {
        Values::Random | Values::Ternary | Values::Almost => (random.below(255) as i64 - 127) as i8,
        Values::Lowest => -127,
        Values::Highest => 127,
    };
    (0..len).map(|_| value()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Sums and floats, one vector and many, of every backend against the reference.
fn check(layout: Layout, (rows, cols, count): (usize, usize, usize), of: [Values; 2], seed: u64) {
    let bytes = weights(layout, rows, cols, of[0], seed);
    let x = activations(cols * count, of[1], seed + 1);
    let x = I8Sym::new(&x).unwrap();
    let matrix = Matrix::new(layout, rows, cols, &bytes[1..]).unwrap();
    let bias: Vec<i32> = (0..rows as i32).map(|row| 1000 * row - 7).collect();
    let layer = Layer::new(matrix);
    let biased = layer.with_bias(Table::Words(&bias), 3).unwrap();
    let x_scales: Vec<f32> = (0..count).map(|row| 0.01 * (row + 1) as f32).collect();
    // Sums of blocks are larger by 2²⁴.
    let unit = if layout.unit() == 1.0 { 33 } else { 50 };
    let multipliers: Vec<i32> = (0..rows as i32).map(|row| (1 << 30) + 9999 * row).collect();
    let shifts: Vec<u8> = (0..rows).map(|row| unit + (row % 9) as u8).collect();
    let rescale = Rescale::rows(Table::Words(&multipliers), &shifts).unwrap();
    let scratch_len = matrix.scratch_len();
    let mut scratch = vec![0; scratch_len];
    let outputs = |engine: &mut Products<'_>| {
        let (mut sums, mut floats) = (vec![1; rows * count], vec![f32::NAN; rows * count]);
        let mut codes = vec![99; rows * count];
        engine(
            &mut sums,
            &mut floats,
            &mut codes,
            &mut vec![0; scratch_len],
        );
        (sums, bits(&floats), codes)
    };
    let expected = outputs(&mut |sums, floats, codes, scratch| {
        Scalar.sums_many(&biased, x, sums, scratch).unwrap();
        Scalar
            .dense_many(&biased, &rescale, x, codes, scratch)
            .unwrap();
        Scalar
            .matmat(&layer, x, &x_scales, floats, scratch)
            .unwrap();
    });
    let first = x.rows(cols).next();
    for backend in Backend::all() {
        // A part of one group of rows, and of many.
        for tile in [1, 1 << 16] {
            let mut threads = Threads::with_tile(tile).with_backend(backend);
            let found = outputs(&mut |sums, floats, codes, scratch| {
                threads.sums_many(&biased, x, sums, scratch).unwrap();
                threads
                    .dense_many(&biased, &rescale, x, codes, scratch)
                    .unwrap();
                threads
                    .matmat(&layer, x, &x_scales, floats, scratch)
                    .unwrap();
            });
            assert!(
                found == expected,
                "{backend}, {layout:?}, {rows} × {cols} × {count}, {of:?}, tile {tile}"
            );
            let Some(x) = first else { continue };
            let (mut sums, mut floats) = (vec![1; rows], vec![f32::NAN; rows]);
            threads.sums(&biased, x, &mut sums, &mut scratch).unwrap();
            threads
                .matvec(&layer, x, x_scales[0], &mut floats, &mut scratch)
                .unwrap();
            let mut codes = vec![99; rows];
            threads
                .dense(&biased, &rescale, x, &mut codes, &mut scratch)
                .unwrap();
            assert!(
                sums == expected.0[..rows]
                    && bits(&floats) == expected.1[..rows]
                    && codes == expected.2[..rows],
                "{backend}, {layout:?}, {rows} × {cols}, {of:?}, tile {tile}"
            );
        }
    }
}

/// Columns of a layout that are near a number, and that it takes.
fn near(layout: Layout, cols: usize) -> usize {
    match layout {
        Layout::Block(format) => cols.div_ceil(format.len()) * format.len(),
        _ => cols,
    }
}

#[test]
fn every_backend_gives_the_reference_bits_on_odd_sizes() {
    let shapes = [
        (1, 1, 1),
        (5, 63, 5),
        (4, 64, 2),
        (7, 65, 12),
        (33, 100, 13),
        (65, 127, 6),
        (3, 129, 25),
        (70, 513, 7),
        (2, 4000, 5),
        // Whole sixteens of short rows, and batches of activations.
        (100, 100, 2),
        (40, 1100, 200),
        (0, 9, 4),
        (6, 20, 0),
    ];
    for layout in Layout::ALL {
        for (seed, (rows, cols, count)) in (1..).zip(shapes) {
            let shape = (rows, near(layout, cols), count);
            check(layout, shape, [Values::Random; 2], seed);
        }
    }
}

#[test]
fn extremes_do_not_overflow() {
    for layout in Layout::ALL {
        for weights in VALUES {
            for x in VALUES {
                check(layout, (9, near(layout, 1400), 6), [weights, x], 3);
            }
        }
    }
}

/// Ternary bytes are multiplied as two bits are, and blocks with one scale are scaled once a row.
#[test]
fn weights_that_are_all_alike_or_almost_give_the_reference_bits() {
    let shapes = [(33, 100, 13), (65, 127, 6), (70, 600, 7), (40, 1100, 200)];
    let blocks = Format::ALL.into_iter().map(Layout::Block);
    for layout in blocks.chain([Layout::Int8]) {
        for (seed, (rows, cols, count)) in (1..).zip(shapes) {
            for weights in [Values::Ternary, Values::Almost] {
                let shape = (rows, near(layout, cols), count);
                check(layout, shape, [weights, Values::Random], seed);
            }
        }
    }
    for weights in [Values::Ternary, Values::Almost] {
        for x in VALUES {
            check(Layout::Int8, (40, 1100, 20), [weights, x], 9);
        }
    }
}

/// Blocks with one scale are multiplied as they are stored, a row or two with four, five or eight rows of activations,
/// fewer if these are 4 KiB apart; long rows in pieces, and some sums are widened after a few blocks.
#[test]
fn every_number_of_activations_gives_the_reference_bits() {
    for layout in [Format::Tq1_0, Format::Tq2_0, Format::Q8_0].map(Layout::Block) {
        for count in 4..20 {
            let shape = (
                1 + count % 4 * 11,
                near(layout, 256 * (count % 13 + 1)),
                count,
            );
            check(
                layout,
                shape,
                [Values::Ternary, Values::Random],
                count as u64,
            );
        }
        for x in VALUES {
            for (blocks, count) in [(21, 9), (16, 13), (27, 8)] {
                check(
                    layout,
                    (33, near(layout, 256 * blocks), count),
                    [Values::Ternary, x],
                    5,
                );
            }
        }
    }
}

/// Rows are taken two, four and sixteen at a time, blocks four, eight and sixteen, and short rows several a vector.
#[test]
fn every_number_of_rows_and_blocks_gives_the_reference_bits() {
    for layout in Layout::ALL {
        for rows in 1..70 {
            // One to six groups of five trits, and a part of them.
            let cols = near(layout, 11 + rows % 6 * 60);
            check(layout, (rows, cols, 1), [Values::Random; 2], rows as u64);
        }
        for part in 1..36 {
            let cols = match layout {
                Layout::Block(format) => format.len() * part,
                _ => 29 * part,
            };
            check(layout, (3, cols, 1), [Values::Random; 2], part as u64);
            // Rows with one scale are added up as a whole, as long as they are.
            if let Layout::Block(_) = layout {
                for weights in [Values::Ternary, Values::Almost] {
                    check(layout, (3, cols, 1), [weights, Values::Random], part as u64);
                }
            }
        }
    }
}

/// Products with activations of 16 bits, of one row and of many, against the reference. Returns whether the sums fit f64
/// with the bit to spare that kernels need.
fn check_wide(
    format: Format,
    (rows, cols, count): (usize, usize, usize),
    of: [Values; 2],
    scale: u16,
    seed: u64,
) -> bool {
    let layout = Layout::Block(format);
    let mut bytes = weights(layout, rows, cols, of[0], seed);
    for block in bytes[1..].chunks_exact_mut(format.bytes()) {
        for at in [Some(format.scale_offset()), format.min_offset()]
            .into_iter()
            .flatten()
        {
            let bits = u16::from_le_bytes([block[at], block[at + 1]]) & (0x8000 | scale);
            block[at..][..2].copy_from_slice(&bits.to_le_bytes());
        }
    }
    let matrix = Matrix::new(layout, rows, cols, &bytes[1..]).unwrap();
    let layer = Layer::new(matrix);
    let mut random = Random::new(seed + 1);
    let codes: Vec<i16> = (0..count * cols)
        .map(|_| match of[1] {
            Values::Random | Values::Ternary | Values::Almost => {
                (random.below(65_025) as i32 - 32_512) as i16
            }
            Values::Lowest => -32_512,
            Values::Highest => 32_512,
        })
        .collect();
    let mut planes = vec![0; 2 * codes.len()];
    let (high, low) = planes.split_at_mut(codes.len());
    activations::planes(&codes, high, low);
    let x = I8Sym::new(&planes).unwrap();
    let x_scales: Vec<f32> = (0..count).map(|row| 0.01 * (row + 1) as f32).collect();
    let mut scratch = vec![0; matrix.scratch_len()];
    let mut sums = vec![0; 2 * count * rows.next_multiple_of(8)];
    let mut expected = vec![f32::NAN; rows * count];
    Scalar
        .matmat_wide(
            &layer,
            x,
            &x_scales,
            &mut expected,
            (&mut sums, &mut scratch),
        )
        .unwrap();
    for backend in Backend::all() {
        for tile in [1, 1 << 16] {
            let mut threads = Threads::with_tile(tile).with_backend(backend);
            let mut found = vec![f32::NAN; rows * count];
            threads
                .matmat_wide(&layer, x, &x_scales, &mut found, (&mut [], &mut []))
                .unwrap();
            assert!(
                bits(&found) == bits(&expected),
                "{backend}, {format:?}, {rows} × {cols} × {count}, {of:?}, tile {tile}"
            );
        }
    }
    matrix.wide_sum_bits() < f64::MANTISSA_DIGITS
}

/// Rows go eight, sixteen and 32 at a time, activations four, six and eight, columns in runs of one part up to a block.
/// Scales below 2⁻³, or 2⁻¹¹ with factors, have sums that fit f64; larger ones may not.
#[test]
fn activations_of_16_bits_give_the_reference_bits() {
    for format in Format::ALL {
        let block = format.len();
        // Parts multiply it by up to 2⁷.
        let small = if format.parts() == 1 { 0x2FFF } else { 0x0FFF };
        let shapes = [
            (1, block, 1),
            (7, 3 * block, 2),
            (16, 9 * block, 17),
            (33, 2 * block, 9),
            (70, 4 * block, 4),
            (100, block, 20),
            (0, block, 3),
            (5, block, 0),
        ];
        for (seed, shape) in (1..).zip(shapes) {
            assert!(check_wide(format, shape, [Values::Random; 2], small, seed));
            check_wide(format, shape, [Values::Random; 2], 0x3BFF, seed);
        }
        for weights in VALUES {
            for x in VALUES {
                for count in [1, 18] {
                    let shape = (19, 3 * block, count);
                    assert!(check_wide(format, shape, [weights, x], small, 3));
                    check_wide(format, shape, [weights, x], 0x2FFF, 3);
                }
            }
        }
    }
}

/// Five trits have other names for some digits, and four bits and pairs are fields of sixteen bits.
#[test]
fn every_pattern_of_sixteen_bits_gives_the_reference_bits() {
    for (layout, cols) in [
        (Layout::FiveTrits, 60_000),
        (Layout::Int4, 65_536),
        (Layout::Int8Pairs, 32_768),
    ] {
        let rows = 4;
        let mut bytes = vec![0; layout.bytes(rows, cols).unwrap()];
        for (pattern, bytes) in bytes.chunks_mut(2).enumerate() {
            // An odd factor, so that no pattern comes twice before all came.
            let pattern = (pattern as u16).wrapping_mul(0x9E37).to_le_bytes();
            bytes.copy_from_slice(&pattern[..bytes.len()]);
        }
        let layer = Layer::new(Matrix::new(layout, rows, cols, &bytes).unwrap());
        for values in VALUES {
            let x = activations(cols, values, 8);
            let x = I8Sym::new(&x).unwrap();
            let mut scratch = vec![0; layer.weights().scratch_len()];
            let (mut expected, mut found) = ([0; 4], [1; 4]);
            Scalar.sums(&layer, x, &mut expected, &mut scratch).unwrap();
            for backend in Backend::all() {
                let mut threads = Threads::default().with_backend(backend);
                threads.sums(&layer, x, &mut found, &mut scratch).unwrap();
                assert_eq!(found, expected, "{backend}, {layout:?}, {values:?}");
            }
        }
    }
}

/// The longest row that 32 bits can sum.
#[test]
fn the_longest_rows_do_not_overflow() {
    for layout in Layout::ALL {
        let cols = tercet_core::linear::MAX_COLS;
        let long = |weights, x| match layout {
            // Their largest scales would leave 62 bits.
            Layout::Block(_) => {}
            _ => check(layout, (5, cols, 5), [weights, x], 4),
        };
        long(Values::Lowest, Values::Highest);
        long(Values::Highest, Values::Highest);
        long(Values::Lowest, Values::Lowest);
    }
}

/// Weights +1 are codes 2, and BitNet's own AVX2 kernel adds these 4,096 products of 254 up to −8,192 for 1,040,384,
/// before it takes off the sum of activations.
#[test]
fn four_thousand_ones_times_127_do_not_wrap() {
    for layout in Layout::ALL.into_iter().filter(|l| l.can_encode()) {
        let Ok(len) = layout.bytes(1, 4096) else {
            continue;
        };
        let mut bytes = vec![0; len];
        let unit = match layout {
            Layout::Block(format) => {
                tercet_core::block::encode(
                    format,
                    tercet_core::quant::Rule::AbsMax,
                    tercet_core::quant::ScaleRule::Rule,
                    &[1.0f32; 4096],
                    &mut bytes,
                )
                .unwrap();
                // The codes of Q8_0 and Q4_0 are not 1.
                if !format.is_ternary() {
                    continue;
                }
                1 << 24
            }
            _ => {
                pack::pack(layout, 1, 4096, &[1; 4096], &mut bytes).unwrap();
                1
            }
        };
        let layer = Layer::new(Matrix::new(layout, 1, 4096, &bytes).unwrap());
        let x = [127; 5 * 4096];
        for backend in Backend::all() {
            let mut threads = Threads::default().with_backend(backend);
            let mut scratch = vec![0; layer.weights().scratch_len()];
            let (mut one, mut five) = ([0], [0; 5]);
            let first = I8Sym::new(&x[..4096]).unwrap();
            threads.sums(&layer, first, &mut one, &mut scratch).unwrap();
            let all = I8Sym::new(&x).unwrap();
            threads
                .sums_many(&layer, all, &mut five, &mut scratch)
                .unwrap();
            assert_eq!(
                (one, five),
                ([520_192 * unit], [520_192 * unit; 5]),
                "{backend}, {layout:?}"
            );
        }
    }
}

/// Any bytes are pairs: an odd column's weight is 128 where its byte is 127 and the even column's is negative.
#[test]
fn any_bytes_of_pairs_give_the_reference_bits() {
    for (cols, pattern) in [(4, [0xFF, 0x7F]), (700, [0x80, 0x7F]), (33, [0x7F, 0x80])] {
        let len = Layout::Int8Pairs.bytes(5, cols).unwrap();
        let bytes: Vec<u8> = pattern.into_iter().cycle().take(len).collect();
        let layer = Layer::new(Matrix::new(Layout::Int8Pairs, 5, cols, &bytes).unwrap());
        let x = activations(6 * cols, Values::Random, 8);
        let x = I8Sym::new(&x).unwrap();
        let mut scratch = vec![0; layer.weights().scratch_len()];
        let mut expected = [0; 30];
        Scalar
            .sums_many(&layer, x, &mut expected, &mut scratch)
            .unwrap();
        for backend in Backend::all() {
            let mut found = [0; 30];
            let mut threads = Threads::default().with_backend(backend);
            threads
                .sums_many(&layer, x, &mut found, &mut scratch)
                .unwrap();
            assert_eq!(found, expected, "{backend}, {cols} columns");
        }
    }
}

#[test]
fn bad_lengths_are_refused_with_what_is_needed() {
    let layer = Layer::new(Matrix::new(Layout::Int8, 2, 3, &[1; 6]).unwrap());
    let x = I8Sym::new(&[1; 6]).unwrap();
    let mut scratch = [0; Layout::Int8.scratch_len(2, 3)];
    for backend in Backend::all() {
        let mut threads = Threads::default().with_backend(backend);
        let mut refused = |x: &[i8], scales: &[f32], out: usize, scratch: &mut [u32]| {
            let x = I8Sym::new(x).unwrap();
            let mut out = vec![0.0; out];
            threads
                .matmat(&layer, x, scales, &mut out, scratch)
                .unwrap_err()
        };
        let length = |expected, found| LinearError::Length { expected, found };
        assert_eq!(refused(&[1; 5], &[1.0; 2], 4, &mut scratch), length(6, 5));
        assert_eq!(refused(&[1; 6], &[1.0; 2], 3, &mut scratch), length(4, 3));
        assert_eq!(refused(&[1; 6], &[1.0; 3], 4, &mut scratch), length(2, 3));
        // Scratch that it does not use it does not ask for.
        assert_eq!(threads.product_scratch_len(layer.weights()), 0);
        let mut out = [0; 4];
        assert_eq!(threads.sums_many(&layer, x, &mut out, &mut []), Ok(()));
        assert_eq!(out, [3; 4]);
        let one = Rescale::one(Requantize::from_scale(2.0).unwrap());
        let three = Rescale::rows(Table::Words(&[1 << 30; 3]), &[30; 3]).unwrap();
        let mut dense = |rescale, x: &[i8], out: &mut [i8], scratch: &mut [u32]| {
            threads.dense_many(&layer, rescale, I8Sym::new(x).unwrap(), out, scratch)
        };
        let mut out = [0; 4];
        let refused = |expected, found| Err(length(expected, found));
        assert_eq!(dense(&one, &[1; 6], &mut out, &mut scratch), Ok(()));
        assert_eq!(out, [6; 4]);
        assert_eq!(dense(&one, &[1; 5], &mut out, &mut scratch), refused(6, 5));
        assert_eq!(dense(&one, &[1; 9], &mut out, &mut scratch), refused(6, 4));
        assert_eq!(
            dense(&three, &[1; 6], &mut out, &mut scratch),
            refused(2, 3)
        );
        assert_eq!(dense(&three, &[], &mut [], &mut scratch), refused(2, 3));
        assert_eq!(dense(&one, &[1; 6], &mut out, &mut []), Ok(()));
    }
}

#[test]
fn floats_are_quantized_row_by_row_and_multiplied() {
    let (rows, cols, count) = (37, 70, 9);
    let mut random = Random::new(5);
    let mut x: Vec<f32> = (0..count * cols)
        .map(|_| random.below(1000) as f32 - 500.0)
        .collect();
    x[3 * cols..4 * cols].fill(0.0);
    let (mut codes, mut scales) = (vec![0; x.len()], vec![0.0; count]);
    let groups = Groups { count, len: cols };
    let mut tensor = Tensor::new(&x, groups, &mut codes, &mut scales, &mut []).unwrap();
    quantize(&mut tensor, Method::Symmetric { limit: 127 }, &mut []).unwrap();
    let bytes = weights(Layout::TernaryLanes, rows, cols, Values::Random, 6);
    let layer = Layer::new(Matrix::new(Layout::TernaryLanes, rows, cols, &bytes[1..]).unwrap());
    let mut scratch = vec![0; layer.weights().scratch_len()];
    let mut expected = vec![0.0; rows * count];
    let codes = I8Sym::new(&codes).unwrap();
    Scalar
        .matmat(&layer, codes, &scales, &mut expected, &mut scratch)
        .unwrap();
    for backend in Backend::all() {
        let mut threads = Threads::default().with_backend(backend);
        let mut found = vec![0.0; rows * count];
        matmat(&mut threads, &layer, &x, &mut found).unwrap();
        assert_eq!(bits(&found), bits(&expected), "{backend}");
        let mut bad = x.clone();
        bad[100] = f32::NAN;
        let refused = matmat(&mut threads, &layer, &bad, &mut found);
        let index = QuantError::NotFinite { index: 100 };
        assert_eq!(refused, Err(ProductError::Quantize(index)));
        let refused = matmat(&mut threads, &layer, &x[1..], &mut found);
        assert!(matches!(refused, Err(ProductError::Linear(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_backend_gives_the_reference_bits(
        layout in proptest::sample::select(Layout::ALL.to_vec()),
        rows in 0usize..80,
        cols in 1usize..600,
        count in 0usize..28,
        seed in any::<u64>(),
    ) {
        check(layout, (rows, near(layout, cols), count), [Values::Random; 2], seed >> 1);
    }
}
