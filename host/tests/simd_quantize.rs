//! The quantizers' kernels give the bits of core's functions, for every instruction set of this machine.

use proptest::prelude::*;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeEngine, QuantizeProblem};
use tercet_core::number::{Element, ExactSum, Random, Stats};
use tercet_core::quant::{
    Applied, Codes, Grid, Groups, Method, Plan, QuantError, Rule, ScaleRule, int8,
};
use tercet_core::{bf16, f16, scalar};
use tercet_host::parallel::{Tensor, Threads};
use tercet_host::simd::Backend;

/// A problem over one group that a single task does.
fn with<T: Element, R>(
    backend: Backend,
    values: &[T],
    codes: &mut [i8],
    run: impl FnOnce(&mut Tensor<'_, T>) -> R,
) -> R {
    let groups = Groups::tensor(values.len()).unwrap();
    let mut scale = [0.0];
    let tensor = Tensor::new(values, groups, codes, &mut scale, &mut []).unwrap();
    run(&mut tensor.with_tile(usize::MAX).with_backend(backend))
}

/// −0 and +0 differ here.
fn bits(stats: &Stats) -> (u64, u32, u32, ExactSum, Option<u64>) {
    let (min, max) = (stats.min.to_bits(), stats.max.to_bits());
    (stats.count, min, max, stats.sum, stats.first_bad)
}

fn check_stats<T: Element>(backend: Backend, values: &[T]) {
    let mut codes = vec![0; values.len()];
    let stats = with(backend, values, &mut codes, |tensor| tensor.stats(0)).unwrap();
    assert_eq!(bits(&stats), bits(&Stats::of(values)), "{backend}");
    let extremes = with(backend, values, &mut codes, |tensor| tensor.extremes(0)).unwrap();
    assert_eq!(
        bits(&extremes),
        bits(&Stats::extremes_of(values)),
        "{backend}"
    );
}

fn by_core<T: Element>(plan: &Plan, values: &[T], codes: &mut [i8]) -> Result<Applied, QuantError> {
    match plan {
        &Plan::Ternary { threshold, sum } => scalar::ternary(values, threshold, sum, codes),
        Plan::Affine(grid) => grid.apply(values, codes),
    }
}

fn check_plan<T: Element>(backend: Backend, values: &[T], plan: &Plan) {
    let (mut found, mut expected) = (vec![99; values.len()], vec![77; values.len()]);
    let applied = with(backend, values, &mut found, |tensor| tensor.apply(0, plan));
    assert_eq!(
        applied,
        by_core(plan, values, &mut expected),
        "{backend}, {plan:?}"
    );
    assert!(found == expected, "{backend}, {plan:?}");
}

fn plans(values: &[f32]) -> Vec<Plan> {
    let stats = Stats::of(values);
    let mut thresholds = vec![0, 1, 2, 0x0080_0000, 0x7F7F_FFFF, 0x7F80_0000, u32::MAX];
    thresholds.extend(values.iter().take(3).map(|x| x.to_bits() & 0x7FFF_FFFF));
    thresholds.extend(stats.abs_mean().map(|mean| (mean / 2.0).to_bits()));
    let ternary = thresholds
        .into_iter()
        .flat_map(|threshold| [false, true].map(|sum| Plan::Ternary { threshold, sum }));
    let mut grids = vec![
        Grid {
            scale: 0.0,
            zero_point: 5,
            low: -128,
            high: 127,
        },
        Grid {
            scale: 1e-45,
            zero_point: -128,
            low: -128,
            high: 127,
        },
        Grid {
            scale: 0.25,
            zero_point: 127,
            low: -128,
            high: 127,
        },
        Grid {
            scale: 1e38,
            zero_point: 0,
            low: -7,
            high: 7,
        },
    ];
    grids.extend(Grid::symmetric(stats.abs_max(), 127));
    grids.extend(Grid::symmetric(stats.abs_max() / 3.0, 7));
    grids.extend(Grid::affine(stats.min, stats.max));
    ternary.chain(grids.into_iter().map(Plan::Affine)).collect()
}

fn check(values: &[f32]) {
    let halves: Vec<_> = values.iter().map(|&x| f16::from_f32(x)).collect();
    let brain: Vec<_> = values.iter().map(|&x| bf16::from_f32(x)).collect();
    for backend in Backend::all() {
        check_stats(backend, values);
        check_stats(backend, &halves);
        check_stats(backend, &brain);
        if values.iter().all(|x| x.is_finite()) {
            for plan in plans(values) {
                check_plan(backend, values, &plan);
                check_plan(backend, &halves, &plan);
                check_plan(backend, &brain, &plan);
            }
        }
    }
}

/// Values of one of several shapes, from narrow to any finite bits.
fn draw(random: &mut Random, len: usize) -> Vec<f32> {
    let (shape, width) = (random.below(6), 1 + random.below(60));
    let top = random.below(255);
    (0..len)
        .map(|_| {
            let pattern = random.next_u64() as u32;
            let uniform = random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0;
            match shape {
                0 => uniform,
                1 => uniform.abs(),
                2 => -uniform.abs() - 1e-3,
                // As after a ReLU.
                3 => uniform.max(0.0),
                4 => {
                    let field = top.saturating_sub(random.below(width)) as u32;
                    f32::from_bits(pattern & 0x807F_FFFF | field << 23)
                }
                _ => {
                    let x = f32::from_bits(pattern);
                    if x.is_finite() { x } else { -0.0 }
                }
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn kernels_equal_core(seed: u64, len in 1usize..600, skip in 0usize..20) {
        let values = draw(&mut Random::new(seed), len + skip);
        // Another alignment.
        check(&values[skip..]);
    }

    #[test]
    fn long_slices_equal_core(seed: u64, len in 4000usize..12_500) {
        let values = draw(&mut Random::new(seed), len);
        for backend in Backend::all() {
            check_stats(backend, &values);
            let mean = Stats::of(&values).abs_mean().unwrap();
            for threshold in [1, (mean / 2.0).to_bits()] {
                check_plan(backend, &values, &Plan::Ternary { threshold, sum: true });
            }
        }
    }

    #[test]
    fn bins_equal_core(seed: u64, len in 1usize..3000, shift in 0u32..24, first in 0u32..250) {
        let values = draw(&mut Random::new(seed), len);
        let first = (first << 23 | 0x12_3456) >> shift << shift;
        let end = (first + (500 << shift.min(20))).min(0x7F80_0000);
        let span = MagnitudeSpan { first, end, shift };
        let mut expected = vec![MagnitudeBin { count: 3, mantissas: 9 }; span.bins()];
        let start = expected.clone();
        scalar::magnitudes(&values, span, &mut expected).unwrap();
        for backend in Backend::all() {
            let (mut bins, mut codes) = (start.clone(), vec![0; len]);
            let counted = with(backend, &values, &mut codes, |tensor| tensor.magnitudes(0, span, &mut bins));
            counted.unwrap();
            prop_assert_eq!(&bins, &expected);
        }
    }
}

/// Values a few places from the middle of two codes, where a product with the inverse may round to the other side.
#[test]
fn values_near_ties_round_as_core() {
    let mut random = Random::new(11);
    for exponent in [-126, -101, -100, -99, -20, -1, 0, 7, 99, 100, 101, 118] {
        for _ in 0..40 {
            let fraction = 1.0 + random.below(1 << 23) as f32 / (1 << 23) as f32;
            let scale = fraction * 2f32.powi(exponent);
            let grid = Grid {
                scale,
                zero_point: random.below(256) as u8 as i8,
                low: -128,
                high: 127,
            };
            let values: Vec<f32> = (0..1024)
                .map(|_| {
                    let half_steps = random.below(1100) as f32 - 550.0;
                    let near = (half_steps * 0.5 * scale).to_bits() as i32;
                    f32::from_bits((near + random.below(5) as i32 - 2) as u32)
                })
                .filter(|x| x.is_finite())
                .collect();
            for backend in Backend::all() {
                check_plan(backend, &values, &Plan::Affine(grid));
            }
        }
    }
}

#[test]
fn extremes_of_the_type_are_right() {
    let largest = f32::MAX;
    let least = f32::from_bits(1);
    let cases: [&[f32]; 9] = [
        &[0.0],
        &[-0.0],
        &[-0.0, 0.0],
        &[least, -least],
        &[largest, -largest, largest],
        &[largest, least, 0.0, -least, -largest],
        &[-1.0, -2.0, -0.5],
        &[f32::MIN_POSITIVE, f32::MIN_POSITIVE - least],
        &[1.0, 1.0 + f32::EPSILON],
    ];
    for case in cases {
        for len in [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 2049, 4097] {
            let values: Vec<f32> = case.iter().copied().cycle().take(len).collect();
            check(&values);
        }
    }
}

#[test]
fn a_value_that_is_not_finite_is_found_at_every_place() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for sign in [1.0, -1.0f32] {
            let mut values = [sign; 4200];
            for place in (0..200).chain(2040..2060).chain(4090..4200) {
                values[place] = bad;
                // A later one does not show.
                values[4199] = bad;
                for backend in Backend::all() {
                    check_stats(backend, &values);
                }
                values[place] = sign;
            }
        }
    }
}

/// At each exponent distance about what the lanes hold exactly, with mantissas that lose a bit where they do not.
#[test]
fn sums_are_exact_at_every_spread() {
    for backend in Backend::all() {
        for distance in 18..=28 {
            for low in [0u32, 1, 2, 3, 100, 225] {
                let high = (low + distance) << 23 | 0x7F_FFFF;
                let mut values = vec![f32::from_bits(high); 4096 + 77];
                for value in values.iter_mut().step_by(3) {
                    *value = -f32::from_bits(low << 23 | 1);
                }
                check_stats(backend, &values);
                let threshold = low << 23 | 1;
                check_plan(
                    backend,
                    &values,
                    &Plan::Ternary {
                        threshold,
                        sum: true,
                    },
                );
            }
        }
    }
}

/// A serial f32 sum stops where a value is less than half its last place: of 100 million normal values it makes a
/// mean of 0.43 for 0.80, of these a million ones it loses all but the first.
#[test]
fn the_mean_is_exact_where_a_plain_sum_stops() {
    let mut values = vec![0.25f32; 1 << 20];
    values[0] = (1 << 23) as f32;
    let plain: f32 = values.iter().sum();
    assert_eq!(plain, values[0]);
    let mean = (f64::from(1 << 23) + 0.25 * f64::from((1 << 20) - 1)) / f64::from(1 << 20);
    for backend in Backend::all() {
        let mut codes = vec![0; values.len()];
        let groups = Groups::tensor(values.len()).unwrap();
        let mut scale = [0.0];
        let tensor = Tensor::new(&values, groups, &mut codes, &mut scale, &mut []).unwrap();
        let method = Method::Ternary {
            rule: Rule::AbsMean,
            scale_rule: ScaleRule::Rule,
        };
        tensor.with_backend(backend).quantize(method).unwrap();
        assert_eq!(scale, [mean as f32]);
    }
}

fn check_rows<T: Element>(values: &[T], groups: Groups, method: Method) {
    let points = if method == Method::Affine {
        groups.count
    } else {
        0
    };
    let room = || {
        (
            vec![0i8; values.len()],
            vec![0.0; groups.count],
            vec![0i8; points],
        )
    };
    let (mut codes, mut scales, mut zero_points) = room();
    let out = (&mut codes, &mut scales, &mut zero_points);
    let mut tensor = scalar::Tensor::new(values, groups, out.0, out.1, out.2).unwrap();
    let report = tercet_core::quant::quantize(&mut tensor, method, &mut []);
    for backend in Backend::all() {
        let mut found = room();
        let out = (&mut found.0, &mut found.1, &mut found.2);
        let tensor = Tensor::new(values, groups, out.0, out.1, out.2).unwrap();
        assert_eq!(tensor.with_backend(backend).quantize(method), report);
        // What is done before a value is refused is left open.
        if report.is_ok() {
            let same = found.0 == codes && found.1 == scales && found.2 == zero_points;
            assert!(same, "{backend}, {groups:?}, {method:?}");
        }
    }
}

/// Rows whose next one is looked at beside their codes, of one sign and of both, of zeros, and with a value that is
/// none.
#[test]
fn rows_equal_core() {
    let mut random = Random::new(29);
    let ternary = Method::Ternary {
        rule: Rule::AbsMean,
        scale_rule: ScaleRule::Rule,
    };
    for len in [1, 63, 64, 77, 128, 192, 1024, 4096, 4160] {
        let count = 6;
        let groups = Groups { count, len };
        for method in [Method::Symmetric { limit: 127 }, Method::Affine, ternary] {
            for bad in [None, Some(len * 3), Some(len * 4 - 1)] {
                let mut values: Vec<f32> =
                    (0..count).flat_map(|_| draw(&mut random, len)).collect();
                values[2 * len..3 * len].fill(0.0);
                if let Some(bad) = bad {
                    values[bad] = f32::NAN;
                }
                let halves: Vec<_> = values.iter().map(|&x| f16::from_f32(x)).collect();
                let brain: Vec<_> = values.iter().map(|&x| bf16::from_f32(x)).collect();
                check_rows(&values, groups, method);
                check_rows(&halves, groups, method);
                check_rows(&brain, groups, method);
            }
        }
    }
}

/// Outputs so large that they are written past the caches, at every alignment that matters, for groups of every kind.
#[test]
fn large_outputs_equal_core() {
    let len = (4 << 20) + 12_345;
    let values = draw(&mut Random::new(3), len);
    let ternary = Method::Ternary {
        rule: Rule::AbsMean,
        scale_rule: ScaleRule::LeastSquares,
    };
    let symmetric = Method::Symmetric { limit: 127 };
    let mut room = vec![0i8; len + 64];
    for (method, group) in [
        (ternary, len),
        (symmetric, len),
        (ternary, 1000),
        (symmetric, 1024),
        (symmetric, 77),
        (symmetric, 5),
        (ternary, 4096),
    ] {
        let groups = Groups {
            count: len / group,
            len: group,
        };
        let len = groups.count * group;
        let mut expected = (vec![0i8; len], vec![0.0; groups.count]);
        let (codes, scales) = (&mut expected.0, &mut expected.1);
        let mut tensor =
            scalar::Tensor::new(&values[..len], groups, codes, scales, &mut []).unwrap();
        let report = tercet_core::quant::quantize(&mut tensor, method, &mut []);
        for backend in Backend::all() {
            for offset in [0, 1, 63] {
                let codes = &mut room[offset..offset + len];
                codes.fill(55);
                let mut scales = vec![0.0; groups.count];
                let tensor = Tensor::new(&values[..len], groups, codes, &mut scales, &mut []);
                let found = tensor.unwrap().with_backend(backend).quantize(method);
                assert_eq!(found, report);
                assert!(
                    *codes == expected.0 && scales == expected.1,
                    "{backend}, {groups:?}"
                );
            }
        }
    }
}

/// Codes back to values: every code, every alignment of either side, and outputs that go past the caches.
#[test]
fn dequantized_codes_equal_core() {
    let mut random = Random::new(17);
    let codes: Vec<i8> = (0..70_000).map(|_| random.next_u64() as i8).collect();
    for (len, offset) in (1..140)
        .map(|len| (len, len % 7))
        .chain([(66_000, 3), (70_000, 0)])
    {
        let codes = &codes[offset..len.max(offset + 1)];
        let groups = Groups::tensor(codes.len()).unwrap();
        for (scale, zero_point) in [(0.37, 0), (1e-45, -128), (-2.5e36, 127)] {
            let coded = Codes {
                groups,
                codes,
                scales: &[scale],
                zero_points: &[zero_point],
            };
            let mut expected = vec![0.0; codes.len()];
            int8::dequantize(coded, &mut expected).unwrap();
            for backend in Backend::all() {
                let mut room = vec![7.0f32; codes.len() + offset];
                let mut engine = Threads::default().with_backend(backend);
                let found = &mut room[offset..];
                engine.dequantize(coded, int8::RANGE, found).unwrap();
                assert!(*found == expected, "{backend}, {len}");
            }
        }
    }
    let len = (3 << 20) + 77;
    let codes: Vec<i8> = codes.iter().copied().cycle().take(len).collect();
    let coded = Codes {
        groups: Groups::tensor(len).unwrap(),
        codes: &codes,
        scales: &[0.5],
        zero_points: &[],
    };
    let mut expected = vec![0.0; len];
    int8::dequantize(coded, &mut expected).unwrap();
    for backend in Backend::all() {
        for offset in [0, 1, 13] {
            let mut room = vec![7.0f32; len + offset];
            let mut engine = Threads::default().with_backend(backend);
            let found = &mut room[offset..];
            engine.dequantize(coded, int8::RANGE, found).unwrap();
            assert!(*found == expected, "{backend}, {offset}");
        }
    }
}
