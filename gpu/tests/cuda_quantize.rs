//! The CUDA engine's quantizers against core's reference engine: codes, scales, counts and refusals, to the bit.

use crate::support::draw::Draw;
use crate::support::emulator::{checked, device};
use crate::support::quantize::{
    KINDS, bins, compare, compare_steps, halves, methods, quantized, value, values,
};
use half::{bf16, f16};
use proptest::prelude::*;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeEngine, QuantizeProblem, Refused};
use tercet_core::number::Element;
use tercet_core::quant::{self, Codes, Grid, Groups, Method, QuantError, Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_gpu::engine::{Cuda, CudaError, CudaOptions};

const LENGTHS: [usize; 12] = [1, 2, 31, 32, 255, 256, 257, 1000, 1023, 4096, 5001, 65_537];

#[test]
fn a_tensor_of_any_length_is_quantized_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (seed, &len) in (0..).zip(&LENGTHS) {
        for kind in 0..KINDS {
            if len > 1000 && kind > 1 || len > 5001 && kind > 0 {
                continue;
            }
            let values = values(seed, kind, len);
            let groups = Groups::tensor(len).unwrap();
            for method in methods() {
                compare(&mut cuda, &values, groups, method, true);
            }
        }
    }
}

#[test]
fn rows_of_any_length_are_quantized_as_by_core() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let shapes = [
        (7, 1),
        (5, 3),
        (9, 31),
        (33, 32),
        (4, 100),
        (3, 256),
        (5, 257),
        (3, 1025),
        (2, 5001),
    ];
    for (seed, (rows, cols)) in (100..).zip(shapes) {
        device.set(&format!("seed={seed}"));
        // Each row is of another kind.
        let mut draw = Draw(seed);
        let values: Vec<f32> = (0..rows)
            .flat_map(|row| (0..cols).map(move |_| row as u64 % KINDS))
            .map(|kind| value(&mut draw, kind))
            .collect();
        let groups = Groups::rows(rows, cols).unwrap();
        let (f16s, bf16s) = (
            halves(&values, f16::from_f32),
            halves(&values, bf16::from_f32),
        );
        for method in methods() {
            compare(&mut cuda, &values, groups, method, true);
            compare(&mut cuda, &f16s, groups, method, true);
            compare(&mut cuda, &bf16s, groups, method, true);
        }
    }
}

#[test]
fn long_groups_are_quantized_by_many_blocks_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    // Longer than what one block takes on, with ends at odd places.
    for (kind, rows, cols) in [(0, 1, 66_003), (1, 2, 33_001), (4, 1, 40_001)] {
        let values = values(kind, kind, rows * cols);
        let groups = Groups::rows(rows, cols).unwrap();
        let bf16s = halves(&values, bf16::from_f32);
        for method in [methods()[2], methods()[5], Method::Affine, methods()[8]] {
            compare(&mut cuda, &values, groups, method, true);
        }
        for method in [Method::Affine, methods()[3]] {
            compare(&mut cuda, &bf16s, groups, method, true);
        }
    }
}

#[test]
fn steps_one_by_one_are_cores() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (rows, cols, kind) in [(3, 5, 0), (4, 257, 1), (2, 3000, 0), (1, 20_000, 4)] {
        let values = values(7, kind, rows * cols);
        let groups = Groups::rows(rows, cols).unwrap();
        for method in methods() {
            compare_steps(&mut cuda, &values, groups, method);
        }
    }
}

/// The sum is a tie between two floats but for one value that lies 2⁻⁸⁰ below: it decides how the mean rounds.
#[test]
fn nothing_is_lost_beside_large_values() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let tie = [1.0, f32::from_bits(103 << 23)];
    for cols in [16, 256, 300, 5000, 70_000] {
        for at in [2, cols / 2, cols - 1] {
            let mut rows = vec![0.0; 3 * cols];
            for (row, tiny) in rows.chunks_mut(cols).zip([0, 47 << 23, 1]) {
                row[at] = f32::from_bits(tiny);
                row[..2].copy_from_slice(&tie);
            }
            let groups = Groups::rows(3, cols).unwrap();
            let rule = Rule::AbsMean;
            let scale_rule = ScaleRule::Rule;
            compare(
                &mut cuda,
                &rows,
                groups,
                Method::Ternary { rule, scale_rule },
                false,
            );
        }
    }
}

/// One value of 1 and eight of 1/4: S²/k is 1 for one code and for nine, so that one is enough.
#[test]
fn equal_errors_take_fewer_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let (rule, scale_rule) = (Rule::Optimal, ScaleRule::Rule);
    for cols in [9, 100, 256, 1000] {
        let mut values = vec![0.0; cols];
        for (i, value) in values.iter_mut().rev().take(9).enumerate() {
            *value = if i == 3 { -1.0 } else { 0.25 };
        }
        let groups = Groups::tensor(cols).unwrap();
        compare(
            &mut cuda,
            &values,
            groups,
            Method::Ternary { rule, scale_rule },
            false,
        );
    }
}

/// Rows for which the search has much to do: nearly constant S²/k, few distinct values, many exponents.
#[test]
fn optima_of_long_rows_are_cores() {
    let Some(device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let cols = 3000;
    let groups = Groups::rows(6, cols).unwrap();
    for seed in 0..4 {
        device.set(&format!("seed={seed}"));
        let mut draw = Draw(seed);
        let mut rows = vec![0.0; 6 * cols];
        for (kind, row) in rows.chunks_mut(cols).enumerate() {
            let mut sum = 1.0f64;
            for (k, x) in row.iter_mut().enumerate() {
                *x = match kind {
                    // The next of x that leaves S²/k as it was.
                    0 => {
                        let next = sum * (((k + 2) as f64 / (k + 1) as f64).sqrt() - 1.0);
                        sum += next;
                        next as f32
                    }
                    1 => [1.0, 0.999, 0.5, 0.25, 0.1][draw.below(5) as usize],
                    2 => f32::from_bits((draw.below(250) as u32) << 23),
                    3 => draw.below(1 << 20) as f32,
                    4 => f32::from_bits(draw.below(1 << 24) as u32),
                    _ => (0..8).map(|_| value(&mut draw, 0)).sum(),
                };
            }
            // In any order, with any signs.
            for k in (1..cols).rev() {
                row.swap(k, draw.below(k as u64 + 1) as usize);
                row[k] = row[k].copysign(value(&mut draw, 0));
            }
        }
        let bf16s = halves(&rows, bf16::from_f32);
        let f16s = halves(&rows, f16::from_f32);
        for scale_rule in [ScaleRule::Rule, ScaleRule::LeastSquares] {
            let rule = Rule::Optimal;
            let method = Method::Ternary { rule, scale_rule };
            compare(&mut cuda, &rows, groups, method, false);
            compare(&mut cuda, &bf16s, groups, method, false);
            compare(&mut cuda, &f16s, groups, method, false);
        }
    }
}

/// Magnitudes from 2⁻⁶ up, as any engine counts them; quantizing must not be disturbed by it.
fn counted<E: QuantizeEngine, T: Element>(engine: &mut E, values: &[T]) -> Vec<MagnitudeBin> {
    let span = MagnitudeSpan {
        first: 121 << 23,
        end: 130 << 23,
        shift: 16,
    };
    let groups = Groups::tensor(values.len()).unwrap();
    let mut table = vec![MagnitudeBin::EMPTY; span.bins()];
    let done = quantized(engine, values, groups, false, |tensor| {
        tensor.magnitudes(0, span, &mut table)?;
        quant::quantize(tensor, Method::Symmetric { limit: 127 }, &mut bins())
    });
    assert!(done.is_ok());
    table
}

#[test]
fn magnitudes_of_every_type_are_counted_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let values = values(7, 0, 30_001);
    let (f16s, bf16s) = (
        halves(&values, f16::from_f32),
        halves(&values, bf16::from_f32),
    );
    let expected = counted(&mut Scalar, &values);
    assert!(expected.iter().any(|bin| bin.count > 1));
    assert_eq!(counted(&mut cuda, &values), expected);
    assert_eq!(counted(&mut cuda, &f16s), counted(&mut Scalar, &f16s));
    assert_eq!(counted(&mut cuda, &bf16s), counted(&mut Scalar, &bf16s));
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (rows, cols) in [(4, 20), (3, 256), (3, 1000), (1, 70_000)] {
        let groups = Groups::rows(rows, cols).unwrap();
        let mut draw = Draw(rows as u64);
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = values(1, 0, rows * cols);
            for _ in 0..3 {
                let at = draw.below(values.len() as u64) as usize;
                values[at] = bad;
            }
            for method in [methods()[2], Method::Affine, methods()[7]] {
                compare(&mut cuda, &values, groups, method, true);
                compare_steps(&mut cuda, &values, groups, method);
            }
            let f16s: Vec<_> = values.iter().map(|&x| f16::from_f32(x)).collect();
            compare(&mut cuda, &f16s, groups, Method::Affine, true);
        }
    }
}

#[test]
fn refusals_come_in_cores_order() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let groups = Groups::rows(5, 40).unwrap();
    let bad_grid = Grid {
        scale: -1.0,
        zero_point: 0,
        low: -1,
        high: 1,
    };
    for bad in [None, Some(3), Some(130)] {
        let mut values = values(3, 5, 200);
        if let Some(index) = bad {
            values[index] = f32::NAN;
        }
        // Values of one sign need a zero point in every group; without room for it the first group is refused.
        for method in [
            Method::Affine,
            Method::Symmetric { limit: 0 },
            Method::Symmetric { limit: -5 },
            Method::Fixed(bad_grid),
        ] {
            compare(&mut cuda, &values, groups, method, false);
        }
    }
    let none: &[f32] = &[];
    let empty = Groups { count: 0, len: 4 };
    let refused = quantized(&mut cuda, none, empty, false, |tensor| {
        quant::quantize(tensor, Method::Affine, &mut [])
    });
    assert_eq!(refused, Err(QuantError::Empty.into()));
    let long = values(0, 0, 300);
    let whole = Groups::tensor(300).unwrap();
    let refused = quantized(&mut cuda, &long, whole, false, |tensor| {
        quant::quantize(tensor, methods()[6], &mut [])
    });
    assert!(matches!(
        refused,
        Err(CudaError::Refused(Refused::Quantize(
            QuantError::Scratch { .. }
        )))
    ));
}

#[test]
fn a_tensor_that_does_not_fit_passes_through() {
    let Some(_device) = device() else { return };
    let values = values(5, 1, 150_000);
    for memory in [512 << 10, 2 << 20] {
        let options = CudaOptions {
            memory: Some(memory),
            ..CudaOptions::default()
        };
        let mut cuda = Cuda::new(&options).unwrap();
        for (rows, cols) in [(1500, 100), (15, 10_000), (1, 150_000)] {
            let groups = Groups::rows(rows, cols).unwrap();
            for method in [methods()[3], methods()[4], Method::Affine] {
                let found = quantized(&mut cuda, &values, groups, true, |tensor| {
                    quant::quantize(tensor, method, &mut bins())
                });
                let expected = quantized(&mut Scalar, &values, groups, true, |tensor| {
                    quant::quantize(tensor, method, &mut bins())
                });
                assert_eq!(
                    found.unwrap(),
                    expected.unwrap(),
                    "{memory}, {groups:?}, {method:?}"
                );
            }
        }
    }
}

#[test]
fn codes_come_back_as_floats() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for (rows, cols) in [
        (1, 1),
        (3, 5),
        (7, 31),
        (2, 1000),
        (65, 257),
        (700, 12),
        (41, 2048),
    ] {
        let values = values(9, 0, rows * cols);
        let groups = Groups::rows(rows, cols).unwrap();
        for (method, points) in [
            (Method::Affine, true),
            (Method::Symmetric { limit: 127 }, false),
        ] {
            let there = cuda.upload(&values).unwrap();
            let mut out = cuda.codes(groups, points).unwrap();
            cuda.quantize(&there, method, &mut [], &mut out).unwrap();
            let quantized = quantized(&mut Scalar, &values, groups, points, |tensor| {
                quant::quantize(tensor, method, &mut [])
            })
            .unwrap();
            let scales: Vec<_> = quantized
                .scales
                .iter()
                .map(|&x| f32::from_bits(x))
                .collect();
            let codes = Codes {
                groups,
                codes: &quantized.codes,
                scales: &scales,
                zero_points: &quantized.zero_points,
            };
            let mut expected = vec![0.0; values.len()];
            quant::int8::dequantize(codes, &mut expected).unwrap();

            let mut room = cuda.zeros(values.len()).unwrap();
            cuda.dequantize(&out, &mut room).unwrap();
            let mut found = vec![1.0; values.len()];
            cuda.read(&room, &mut found).unwrap();
            assert!(
                found
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| a.to_bits() == b.to_bits())
            );

            let mut room = cuda.zeros::<f16>(values.len()).unwrap();
            cuda.dequantize(&out, &mut room).unwrap();
            let mut found = vec![f16::ONE; values.len()];
            cuda.read(&room, &mut found).unwrap();
            let narrow = expected.iter().map(|&x| f16::from_f32(x).to_bits());
            assert!(found.iter().map(|x| x.to_bits()).eq(narrow));

            let mut room = cuda.zeros::<bf16>(values.len()).unwrap();
            cuda.dequantize(&out, &mut room).unwrap();
            let mut found = vec![bf16::ONE; values.len()];
            cuda.read(&room, &mut found).unwrap();
            let narrow = expected.iter().map(|&x| bf16::from_f32(x).to_bits());
            assert!(found.iter().map(|x| x.to_bits()).eq(narrow));
        }
    }
}

#[test]
fn the_first_code_outside_a_range_is_named() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    for len in [0, 1, 15, 16, 17, 5000] {
        let mut codes = vec![1i8; len];
        let there = cuda.upload(&codes).unwrap();
        assert_eq!(cuda.first_outside(&there, -1, 1).unwrap(), None);
        for index in [len.saturating_sub(1), len / 2] {
            if let Some(code) = codes.get_mut(index) {
                *code = -2;
                let there = cuda.upload(&codes).unwrap();
                assert_eq!(cuda.first_outside(&there, -1, 1).unwrap(), Some(index));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if checked() { 6 } else { 48 }))]

    #[test]
    fn any_tensor_is_quantized_as_by_core(
        seed in any::<u64>(),
        rows in 1usize..6,
        cols in 1usize..600,
        kind in 0..KINDS,
        method in 0usize..14,
        points in any::<bool>(),
    ) {
        let Some(device) = device() else { return Ok(()) };
        device.set(&format!("seed={}", seed >> 40));
        let mut cuda = Cuda::first().unwrap();
        let mut values = values(seed, kind, rows * cols);
        if seed % 5 == 0 {
            let at = seed as usize % values.len();
            values[at] = f32::NAN;
        }
        let groups = Groups::rows(rows, cols).unwrap();
        compare(&mut cuda, &values, groups, methods()[method], points);
    }
}
