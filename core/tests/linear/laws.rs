//! Products against plain 64- and 128-bit arithmetic.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::arch::plain;
use tercet_core::arch::portable;
use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::f16;
use tercet_core::linear::{
    I8Sym, Layer, Layout, Matrix, Requantize, Rescale, Sums, Table, argmax, dense, matvec, sums,
};
use tercet_core::number::Random;
use tercet_core::scalar::Scalar;

use super::matrices::{Weights, activations, any_weights};
use crate::support::cases;

fn problem() -> impl Strategy<Value = (Weights, Vec<i8>)> {
    any_weights().prop_flat_map(|weights| {
        let x = activations(weights.cols);
        (Just(weights), x)
    })
}

fn matrix(weights: &Weights) -> Matrix<'_> {
    Matrix::new(weights.layout, weights.rows, weights.cols, weights.bytes()).unwrap()
}

fn scratch(matrix: &Matrix<'_>) -> Vec<u32> {
    // Whatever was there before must not matter.
    vec![0xDEAD_BEEF; matrix.scratch_len()]
}

/// All that is given, padding too.
struct Collect(Vec<i64>);

impl Sums for Collect {
    fn narrow(&mut self, sums: &[i32]) {
        self.0.extend(sums.iter().map(|&sum| i64::from(sum)));
    }

    fn wide(&mut self, sums: &[i64]) {
        self.0.extend(sums);
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn sums_are_exact((weights, x) in problem()) {
        let matrix = matrix(&weights);
        let x = I8Sym::new(&x).unwrap();
        let mut out = vec![-1; weights.rows];
        sums(&Layer::new(matrix), x, &mut out, &mut scratch(&matrix)).unwrap();
        prop_assert_eq!(&out, &weights.sums(x.get()));

        // All that a kernel could use, and a word less.
        prop_assert!(matrix.fast_scratch_len() >= matrix.scratch_len());
        for fewer in [0, 1] {
            let len = matrix.fast_scratch_len().saturating_sub(fewer).max(matrix.scratch_len());
            let mut again = vec![-1; weights.rows];
            sums(&Layer::new(matrix), x, &mut again, &mut vec![0xDEAD_BEEF; len]).unwrap();
            prop_assert_eq!(&again, &out);
        }

        let mut plain = Vec::new();
        plain::linear::for_each_sum(&matrix, x, |row, sum| plain.push((row, sum)));
        let numbered: Vec<(usize, i64)> = out.into_iter().enumerate().collect();
        prop_assert_eq!(plain, numbered);
    }

    #[test]
    fn ternary_layers_of_one_scale_give_together_what_each_gives(
        fours in vec(0usize..20, 3),
        blocks in 1usize..5,
        bytes in vec(any::<u8>(), 1024),
        scales in vec(0u16..0x5C00, 3),
        extreme in any::<bool>(),
        x in vec(-127i8..=127, 1024),
        x_scale in 0f32..10.0,
    ) {
        let layout = Layout::Block(Format::Tq1_0);
        let cols = 256 * blocks;
        let x: Vec<i8> = x[..cols].iter().map(|&x| if extreme { 127 } else { x }).collect();
        let x = I8Sym::new(&x).unwrap();
        let all: Vec<Vec<u8>> = fours.iter().zip(&scales).map(|(&fours, scale)| {
            let mut rows: Vec<u8> = bytes.iter().copied().cycle().take(4 * fours * blocks * 54).collect();
            for (at, block) in rows.chunks_exact_mut(54).enumerate() {
                if extreme {
                    block.fill(if at % 3 == 0 { 0 } else { 255 });
                }
                block[52..].copy_from_slice(&scale.to_le_bytes());
            }
            rows
        }).collect();
        let layers: Vec<Layer<'_>> = all.iter().zip(&fours).map(|(bytes, fours)| {
            Layer::new(Matrix::new(layout, 4 * fours, cols, bytes).unwrap())
        }).collect();
        // Tiles of all rows, of some, and none.
        let most = layout.fast_scratch_len(256, cols);
        for words in [most, 6 * 256 + 4 * 30, 0] {
            let mut scratch = vec![0xDEAD_BEEF; words];
            let mut products = [0, 1, 2].map(|at| (&layers[at], vec![f32::NAN; 4 * fours[at]]));
            let each = products.each_mut().map(|(layer, out)| (*layer, &mut out[..]));
            Scalar.matmat_each(each, x, &[x_scale], &mut scratch).unwrap();
            for (layer, out) in &products {
                plain::linear::for_each_sum(layer.weights(), x, |row, sum| {
                    assert_eq!(out[row].to_bits(), layer.value(row, sum, x_scale).to_bits());
                });
            }
        }
    }

    #[test]
    fn int8_four_rows_at_once_gives_the_sums((weights, x) in problem()) {
        let matrix = matrix(&weights);
        let mut found = Collect(Vec::new());
        if weights.layout == Layout::Int8 {
            portable::int8::sums(&matrix, I8Sym::new(&x).unwrap(), &mut found);
            prop_assert!(found.0.len() >= weights.rows);
            found.0.truncate(weights.rows);
            prop_assert_eq!(found.0, weights.sums(&x));
        }
    }

    #[test]
    fn parts_of_a_layer_give_parts_of_its_product(
        (weights, x) in problem(),
        first in 0usize..3,
        rows in 0usize..20,
        biases in vec(any::<i16>(), 20),
    ) {
        let matrix = matrix(&weights);
        let biases: Vec<i32> = biases.iter().take(weights.rows).map(|&b| b.into()).collect();
        let layer = Layer::new(matrix).with_bias(Table::Words(&biases), 3).unwrap();
        let x = I8Sym::new(&x).unwrap();
        let mut whole = vec![0; weights.rows];
        sums(&layer, x, &mut whole, &mut scratch(&matrix)).unwrap();

        let first = first * weights.layout.group_rows();
        let Some(part) = layer.part(first, rows) else {
            prop_assert!(first > weights.rows);
            return Ok(());
        };
        let len = part.weights().rows();
        prop_assert_eq!(len, rows.min(weights.rows - first));
        let mut out = vec![0; len];
        sums(&part, x, &mut out, &mut scratch(part.weights())).unwrap();
        prop_assert_eq!(&out[..], &whole[first..first + len]);
        if weights.layout.group_rows() > 1 {
            prop_assert!(layer.part(first + 1, rows).is_none());
        }
    }

    #[test]
    fn floats_are_the_sum_rounded_once_and_scaled_twice(
        (weights, x) in problem(),
        scale in -1e3f32..1e3,
        x_scale in 0f32..10.0,
        biases in vec(any::<i32>(), 20),
    ) {
        let matrix = matrix(&weights);
        let x = I8Sym::new(&x).unwrap();
        let scales: Vec<i32> =
            (0..weights.rows).map(|row| (scale / (row + 1) as f32).to_bits() as i32).collect();
        let le: Vec<u8> = scales.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let (unit, matrix) = match weights.layout {
            Layout::Block(_) => (2f32.powi(-24), matrix),
            _ => (1.0, matrix.with_row_scales(Table::Bytes(&le)).unwrap()),
        };
        let biases = &biases[..weights.rows];
        let layer = Layer::new(matrix).with_bias(Table::Words(biases), 7).unwrap();
        let mut out = vec![f32::NAN; weights.rows];
        matvec(&layer, x, x_scale, &mut out, &mut scratch(&matrix)).unwrap();
        for (row, (y, sum)) in out.into_iter().zip(weights.sums(x.get())).enumerate() {
            let sum = sum + i64::from(biases[row]) * 128;
            let scaled = match weights.layout {
                Layout::Block(_) => sum as f32 * unit,
                _ => sum as f32 * f32::from_bits(scales[row] as u32),
            };
            prop_assert_eq!((scaled * x_scale).to_bits(), y.to_bits());
        }
    }

    #[test]
    fn sums_with_a_scale_per_row_come_to_what_their_products_do(
        rows in vec((-(1i32 << 26)..1 << 26, 0u16..0x7C00, any::<bool>()), 1..=8),
        x_scale in prop_oneof![0f32..10.0, Just(f32::from_bits(1)), Just(f32::MAX)],
        bias in proptest::option::of(any::<i32>()),
    ) {
        // Times 2²⁴ a scale is whole. Sums are such that a matrix would be accepted that has them.
        let row = |(sum, bits, negative): (i32, u16, bool)| {
            let scale = f16::from_bits(bits | u16::from(negative) << 15);
            let whole = (f64::from(scale) * 16_777_216.0) as i64;
            let most = (1 << 60) / whole.abs().max(1);
            let sum = i64::from(sum) % most.max(1);
            ((sum as i32, scale), sum * whole)
        };
        let (scaled, wide): (Vec<_>, Vec<_>) = rows.into_iter().map(row).unzip();
        let bytes = vec![0; 34 * wide.len()];
        let q8_0 = Layout::Block(Format::Q8_0);
        let matrix = Matrix::new(q8_0, wide.len(), 32, &bytes).unwrap();
        let biases = vec![bias.unwrap_or(0); wide.len()];
        let plain = Layer::new(matrix);
        let layer = match bias {
            Some(_) => plain.with_bias(Table::Words(&biases), 7).unwrap(),
            None => plain,
        };
        let [mut one, mut other] = [(); 2].map(|()| vec![f32::NAN; wide.len()]);
        layer.scaled(x_scale, &mut one).by_scales(&scaled);
        layer.scaled(x_scale, &mut other).wide(&wide);
        let bits = |out: Vec<f32>| out.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        prop_assert_eq!(bits(one), bits(other));
        let [mut one, mut other] = [(); 2].map(|()| vec![0; wide.len()]);
        layer.exact(&mut one).by_scales(&scaled);
        layer.exact(&mut other).wide(&wide);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn int8_outputs_are_the_exact_product_rounded_once(
        (weights, x) in problem(),
        seeds in vec((1i64 << 30..1 << 31, 1u8..=94, any::<i32>()), 20),
        relu: bool,
        bias_shift in 0u8..=30,
    ) {
        let matrix = matrix(&weights);
        let x = I8Sym::new(&x).unwrap();
        let rows = weights.rows;
        let multipliers: Vec<i32> = seeds.iter().take(rows).map(|seed| seed.0 as i32).collect();
        let shifts: Vec<u8> = seeds.iter().take(rows).map(|seed| seed.1).collect();
        let biases: Vec<i32> = seeds.iter().take(rows).map(|seed| seed.2).collect();
        let layer = Layer::new(matrix).with_bias(Table::Words(&biases), bias_shift).unwrap();
        let by_rows = Rescale::rows(Table::Words(&multipliers), &shifts).unwrap();
        let one = Requantize::new(seeds[0].0 as i32, seeds[0].1).unwrap();
        for (rescale, shared) in [(by_rows, false), (Rescale::one(one), true)] {
            let rescale = if relu { rescale.with_relu() } else { rescale };
            let mut out = vec![99; rows];
            dense(&layer, &rescale, x, &mut out, &mut scratch(&matrix)).unwrap();
            // Many rows of activations give what each of them gives: here the same, and its opposite.
            let opposite: Vec<i8> = x.get().iter().map(|x| -x).collect();
            let mut of_opposite = vec![99; rows];
            let x_opposite = I8Sym::new(&opposite).unwrap();
            dense(&layer, &rescale, x_opposite, &mut of_opposite, &mut scratch(&matrix)).unwrap();
            let twice = [x.get(), &opposite].concat();
            let mut many = vec![98; 2 * rows];
            let twice = I8Sym::new(&twice).unwrap();
            Scalar.dense_many(&layer, &rescale, twice, &mut many, &mut scratch(&matrix)).unwrap();
            prop_assert_eq!(&many, &[&out[..], &of_opposite].concat());
            for (row, (y, sum)) in out.into_iter().zip(weights.sums(x.get())).enumerate() {
                let (m, s, _) = if shared { seeds[0] } else { seeds[row] };
                let sum = i128::from(sum) + (i128::from(biases[row]) << bias_shift);
                let exact = (sum * i128::from(m) + (1i128 << (s - 1))) >> s;
                let lowest = if relu { 0 } else { -127 };
                prop_assert_eq!(i128::from(y), exact.clamp(lowest, 127), "row {}", row);
            }
        }
    }

    #[test]
    fn argmax_is_the_lowest_index_of_the_largest(values in vec(-3i32..3, 0..12)) {
        let expected = values.iter().max().map_or(0, |largest| {
            values.iter().position(|value| value == largest).unwrap()
        });
        prop_assert_eq!(argmax(&values), expected);
    }
}

#[test]
fn argmax_passes_over_nan() {
    assert_eq!(argmax(&[f32::NAN, 1.0, 2.0]), 2);
    assert_eq!(argmax(&[1.0, f32::NAN, 0.5]), 0);
}

/// BitNet's AVX2 kernel gives −8,192 here (see the project's measurements of peers): its partial sums leave 16 bits.
#[test]
fn long_rows_of_extremes_do_not_wrap() {
    for (layout, code, worth) in [
        (Layout::TernaryLanes, 1, 1),
        (Layout::TernaryLanes, -1, -1),
        (Layout::FiveTrits, 1, 1),
        (Layout::FiveTrits, -1, -1),
        (Layout::Int8, -128, -128),
        (Layout::Int8, 127, 127),
        (Layout::Int8Pairs, -127, -127),
        (Layout::Int8Pairs, 127, 127),
        (Layout::Int4, -8, -8),
        (Layout::Int4, 7, 7),
    ] {
        for cols in [4096, tercet_core::linear::MAX_COLS] {
            let codes = vec![code; 9 * cols];
            let bytes = super::matrices::packed(layout, 9, cols, &codes);
            let matrix = Matrix::new(layout, 9, cols, &bytes).unwrap();
            for x in [127i8, -127] {
                let activations = vec![x; cols];
                let mut out = [0; 9];
                let x_sym = I8Sym::new(&activations).unwrap();
                sums(&Layer::new(matrix), x_sym, &mut out, &mut scratch(&matrix)).unwrap();
                assert_eq!(out, [worth * i64::from(x) * cols as i64; 9]);
            }
        }
    }
}

/// TQ1_0 of many rows goes by tables where there is scratch for them: with any bytes, and tiles of 256 rows of which
/// the last has any number.
#[test]
fn many_rows_of_five_digits_a_byte_are_summed_by_tables() {
    let layout = Layout::Block(Format::Tq1_0);
    let mut random = Random::new(9);
    for rows in [95, 96, 97, 256, 257, 300, 513] {
        let cols = 512;
        let mut bytes: Vec<u8> = (0..layout.bytes(rows, cols).unwrap())
            .map(|_| random.below(256) as u8)
            .collect();
        for block in bytes.chunks_exact_mut(54) {
            let scale = f16::from_f32(random.normal());
            block[52..].copy_from_slice(&scale.to_le_bytes());
        }
        // Extremes among them.
        let x: Vec<i8> = (0..cols)
            .map(|at| match at % 3 {
                0 => [-127, 127][at % 2],
                _ => (random.below(255) as i64 - 127) as i8,
            })
            .collect();
        let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
        let x = I8Sym::new(&x).unwrap();
        let mut expected = vec![0; rows];
        plain::linear::for_each_sum(&matrix, x, |row, sum| expected[row] = sum);
        for words in [matrix.fast_scratch_len(), matrix.scratch_len()] {
            let mut out = vec![-1; rows];
            sums(&Layer::new(matrix), x, &mut out, &mut vec![7; words]).unwrap();
            assert_eq!(out, expected, "{rows} rows, {words} words");
        }
    }
}
