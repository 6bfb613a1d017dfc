//! int8 and int4 grids: golden values, laws, edges of the float range.

use crate::support::{self, finite, vectors};
use proptest::prelude::*;
use tercet_core::number::max;
use tercet_core::quant::{
    Codes, Grid, Groups, Method, QuantError, Report, int4, int8, quantize, ternary,
};
use tercet_core::scalar::Tensor;

struct Outputs {
    codes: Vec<i8>,
    scales: Vec<f32>,
    zero_points: Vec<i8>,
    report: Report,
}

fn run(values: &[f32], groups: Groups, method: Method) -> Outputs {
    let mut out = Outputs {
        codes: vec![99; values.len()],
        scales: vec![f32::NAN; groups.count],
        zero_points: vec![99; groups.count],
        report: Report::default(),
    };
    let mut tensor = Tensor::new(
        values,
        groups,
        &mut out.codes,
        &mut out.scales,
        &mut out.zero_points,
    )
    .unwrap();
    out.report = quantize(&mut tensor, method, &mut []).unwrap();
    out
}

fn assert_half_a_step(values: &[f32]) {
    let groups = Groups::tensor(values.len()).unwrap();
    for method in [
        Method::Symmetric { limit: 127 },
        Method::Symmetric { limit: 7 },
        Method::Affine,
    ] {
        let found = run(values, groups, method);
        assert_eq!(found.report.clipped, 0);
        let codes = Codes {
            groups,
            codes: &found.codes,
            scales: &found.scales,
            zero_points: &found.zero_points,
        };
        let mut out = vec![0.0; values.len()];
        int8::dequantize(codes, &mut out).unwrap();
        // An affine zero point is rounded, which moves the ends by up to half a step more.
        let steps = if method == Method::Affine { 1.0 } else { 0.5 };
        for (&x, y) in values.iter().zip(out) {
            let (x, y) = (f64::from(x), f64::from(y));
            // The quotient and the product are rounded to f32 once each.
            let bound = steps * f64::from(found.scales[0]) + x.abs() * 2f64.powi(-22);
            assert!((x - y).abs() <= bound, "{x} became {y}");
        }
    }
}

/// 118.500004 steps, whose quotient is rounded to 118.5 and so goes to 118.
#[test]
fn a_quotient_that_is_rounded_to_a_tie_may_be_off_by_that_more() {
    assert_half_a_step(&[987.63086, 921.5296]);
}

proptest! {
    /// What a small image takes of the quantizer, in place of all methods' driver.
    #[test]
    fn symmetric_codes_are_those_of_the_grid_of_the_largest_magnitude(values in vectors(1..600)) {
        let values: Vec<f32> = values.into_iter().filter(|x| x.is_finite()).collect();
        prop_assume!(!values.is_empty());
        let groups = Groups::tensor(values.len()).unwrap();
        let whole = run(&values, groups, Method::Symmetric { limit: int8::LIMIT });
        let largest = max::abs_max(&values).unwrap();
        let grid = Grid::symmetric(largest, int8::LIMIT).unwrap();
        let mut codes = vec![99; values.len()];
        let applied = grid.apply(&values, &mut codes).unwrap();
        prop_assert_eq!(codes, whole.codes);
        prop_assert_eq!(grid.scale, whole.scales[0]);
        prop_assert_eq!(applied.clipped, whole.report.clipped);
    }
}

#[test]
fn golden_symmetric_rows() {
    let values = [
        127.0f32, -0.5, 0.5, 1.5, -2.5, 3.4, 0.0, -0.0, 7.0, -7.0, 3.5, 0.4,
    ];
    let groups = Groups::rows(3, 4).unwrap();
    let eight = run(&values, groups, Method::Symmetric { limit: 127 });
    assert_eq!(eight.scales, [1.0, 3.4 / 127.0, 7.0 / 127.0]);
    // Ties to even: −0.5 → 0, 0.5 → 0, 1.5 → 2; 3.5 / (7/127) = 63.5 → 64.
    assert_eq!(eight.codes[..4], [127, 0, 0, 2]);
    assert_eq!(eight.codes[4..], [-93, 127, 0, 0, 127, -127, 64, 7]);
    assert_eq!(eight.zero_points, [0; 3]);
    let four = run(&values, groups, Method::Symmetric { limit: 7 });
    assert_eq!(four.scales, [127.0 / 7.0, 3.4 / 7.0, 1.0]);
    // 3.5 is a tie between 3 and 4.
    assert_eq!(four.codes, [7, 0, 0, 0, -5, 7, 0, 0, 7, -7, 4, 0]);
}

#[test]
fn golden_affine() {
    // ONNX's example for DynamicQuantizeLinear: 153, 255, 0, 26, 221, 179 as uint8, so 128 less here.
    let values = [0.0f32, 2.0, -3.0, -2.5, 1.34, 0.5];
    let found = run(&values, Groups::tensor(6).unwrap(), Method::Affine);
    assert_eq!(found.scales, [0.019_607_844]);
    assert_eq!(found.zero_points, [25]);
    assert_eq!(
        found.codes,
        [25, 127, -128, -102, 93, 51].map(|code: i16| code as i8)
    );
    assert_eq!((found.report.coded, found.report.clipped), (5, 0));
}

#[test]
fn affine_range_always_holds_zero() {
    let grid = |min, max| Grid::affine(min, max).unwrap();
    assert_eq!(
        (grid(1.0, 2.55).zero_point, grid(1.0, 2.55).scale),
        (-128, 2.55 / 255.0)
    );
    assert_eq!(
        (grid(-2.55, -1.0).zero_point, grid(-2.55, -1.0).scale),
        (127, 2.55 / 255.0)
    );
    assert_eq!(
        (grid(-0.0, 0.0).zero_point, grid(-0.0, 0.0).scale),
        (0, 0.0)
    );
    // max − min overflows, the scale does not.
    let whole = grid(f32::MIN, f32::MAX);
    assert_eq!(whole.scale, f32::MAX / 255.0 + f32::MAX / 255.0);
    assert_eq!((whole.code(f32::MIN), whole.code(f32::MAX)), (-128, 127));
    assert_eq!(whole.code(0.0), whole.zero_point);
}

#[test]
fn groups_without_a_scale_become_zeros() {
    let tiny = f32::from_bits(1);
    for (method, flushed) in [
        (Method::Symmetric { limit: 127 }, 1),
        (Method::Symmetric { limit: 7 }, 1),
        (Method::Affine, 1),
    ] {
        let found = run(
            &[0.0, -0.0, tiny, -tiny],
            Groups::rows(2, 2).unwrap(),
            method,
        );
        assert_eq!((found.codes, found.scales), (vec![0; 4], vec![0.0; 2]));
        assert_eq!(
            (found.report.zero, found.report.flushed, found.report.coded),
            (1, flushed, 0)
        );
    }
}

#[test]
fn a_coarse_subnormal_scale_clips_and_says_so() {
    // 190/127 rounds to one unit, so the largest value lies 63 steps past the end.
    let found = run(
        &[f32::from_bits(190)],
        Groups::tensor(1).unwrap(),
        Method::Symmetric { limit: 127 },
    );
    assert_eq!((found.codes, found.report.clipped), (vec![127], 1));
}

#[test]
fn refusals() {
    for (min, max) in [
        (f32::NAN, 1.0),
        (0.0, f32::INFINITY),
        (2.0, 1.0),
        (f32::NEG_INFINITY, 0.0),
    ] {
        assert_eq!(Grid::affine(min, max), Err(QuantError::Range));
    }
    for (abs_max, limit) in [
        (f32::NAN, 7),
        (-1.0, 7),
        (f32::INFINITY, 7),
        (1.0, 0),
        (1.0, -7),
    ] {
        assert_eq!(Grid::symmetric(abs_max, limit), Err(QuantError::Range));
    }
    let good = Grid {
        scale: 1.0,
        zero_point: 0,
        low: -7,
        high: 7,
    };
    let bad = [
        Grid {
            scale: -1.0,
            ..good
        },
        Grid {
            scale: f32::NAN,
            ..good
        },
        Grid {
            scale: f32::INFINITY,
            ..good
        },
        Grid { low: 8, ..good },
        Grid {
            zero_point: -8,
            ..good
        },
    ];
    for grid in bad {
        let refused = grid.apply(&[1.0f32], &mut [0]).unwrap_err();
        assert_eq!(refused, QuantError::Range, "{grid:?}");
    }
    assert_eq!(Groups::tensor(0), Err(QuantError::Empty));
    assert_eq!(Groups::rows(3, 0), Err(QuantError::Empty));
    assert_eq!(
        Groups::blocks(2, 96, 64),
        Err(QuantError::GroupLength {
            len: 96,
            group_len: 64
        })
    );
    assert_eq!(
        Groups::blocks(2, 96, 0),
        Err(QuantError::GroupLength {
            len: 96,
            group_len: 0
        })
    );
    assert_eq!(Groups::blocks(2, 96, 32), Ok(Groups { count: 6, len: 32 }));
    let overflow = Groups {
        count: usize::MAX,
        len: 2,
    };
    assert_eq!(
        overflow.check(4),
        Err(QuantError::GroupLength {
            len: 4,
            group_len: 2
        })
    );
    // A zero point that nobody keeps, and lengths that lie.
    let (values, groups) = ([1.0f32, 2.0], Groups::tensor(2).unwrap());
    let tensor_of = |codes: usize, scales: usize, points: usize| {
        let (mut codes, mut scales, mut points) =
            (vec![0; codes], vec![0.0; scales], vec![0; points]);
        let mut tensor = Tensor::new(&values, groups, &mut codes, &mut scales, &mut points)?;
        int8::affine(&mut tensor)
    };
    let length = |expected, found| Err(QuantError::Length { expected, found });
    assert_eq!(tensor_of(2, 1, 0), length(1, 0));
    assert_eq!(tensor_of(3, 1, 1), length(2, 3));
    assert_eq!(tensor_of(2, 2, 1), length(1, 2));
    assert_eq!(tensor_of(2, 1, 2), length(1, 2));
    assert!(tensor_of(2, 1, 1).is_ok());
}

#[test]
fn decoders_refuse_codes_that_are_none() {
    let groups = Groups::tensor(4).unwrap();
    let mut out = [9.0; 4];
    let mut decode =
        |codes: [i8; 4], decode: fn(Codes<'_>, &mut [f32]) -> Result<(), QuantError>| {
            let codes = Codes {
                groups,
                codes: &codes,
                scales: &[0.5],
                zero_points: &[],
            };
            decode(codes, &mut out).map(|()| out)
        };
    assert_eq!(
        decode([1, 0, -1, 1], ternary::dequantize),
        Ok([0.5, 0.0, -0.5, 0.5])
    );
    assert_eq!(
        decode([1, 2, -1, -2], ternary::dequantize),
        Err(QuantError::CodeRange { index: 1 })
    );
    assert_eq!(
        decode([7, -8, 0, 1], int4::dequantize),
        Ok([3.5, -4.0, 0.0, 0.5])
    );
    assert_eq!(
        decode([7, -8, 8, 1], int4::dequantize),
        Err(QuantError::CodeRange { index: 2 })
    );
    assert_eq!(
        decode([127, -128, 0, 1], int8::dequantize),
        Ok([63.5, -64.0, 0.0, 0.5])
    );
}

proptest! {
    #![proptest_config(support::cases(300))]

    /// The vector loop is the one-value formula, on any grid and any finite bits.
    #[test]
    fn loop_equals_formula(
        values in vectors(1..300),
        scale in any::<u32>().prop_map(|b| f32::from_bits(b & 0x7FFF_FFFF)).prop_filter("finite", |x| x.is_finite()),
        mut ends in any::<[i8; 3]>(),
    ) {
        ends.sort_unstable();
        let grid = Grid { scale, zero_point: ends[1], low: ends[0], high: ends[2] };
        let mut codes = vec![0; values.len()];
        let applied = grid.apply(&values, &mut codes).unwrap();
        let expected: Vec<i8> = values.iter().map(|&x| grid.code(x)).collect();
        let coded = expected.iter().filter(|&&code| code != ends[1]).count();
        prop_assert_eq!(codes, expected);
        prop_assert_eq!(applied.coded, coded as u64);
    }

    /// `code` against f64: x / scale rounded as f32, ties to even, saturated.
    #[test]
    fn code_equals_quantize_linear(x in finite(), scale in 1e-30f32..1e30, zero_point in any::<i8>()) {
        let grid = Grid { scale, zero_point, low: -128, high: 127 };
        let expected = (f64::from(x / scale).round_ties_even() + f64::from(zero_point)).clamp(-128.0, 127.0);
        prop_assert_eq!(f64::from(grid.code(x)), expected);
    }

    /// Half a step is the most a code is off, where the scale is a normal float; zero is exact; nothing is clipped.
    #[test]
    fn error_is_at_most_half_a_step(values in prop::collection::vec(-1e3f32..1e3, 1..200)) {
        assert_half_a_step(&values);
    }

    /// Codes order as values do, and 0 has the zero point's.
    #[test]
    fn codes_are_monotone(mut values in prop::collection::vec(finite(), 1..200)) {
        values.push(0.0);
        values.sort_by(f32::total_cmp);
        let groups = Groups::tensor(values.len()).unwrap();
        for method in [Method::Symmetric { limit: 127 }, Method::Affine] {
            let found = run(&values, groups, method);
            prop_assert!(found.codes.is_sorted());
            let zero = values.iter().position(|&x| x == 0.0).unwrap();
            prop_assert_eq!(found.codes[zero], found.zero_points[0]);
        }
    }
}
