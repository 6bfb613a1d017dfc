//! Calibration from a histogram against the same choice made from the data themselves.

use proptest::prelude::*;
use tercet_core::number::Random;
use tercet_core::quant::calibrate::{Calibration, RangeRule, Scheme, calibrate};
use tercet_core::quant::{Grid, HOST_BITS, Histogram, QuantError, SMALL_BITS};

const METHODS: [RangeRule; 5] = [
    RangeRule::AbsMax,
    RangeRule::MinMax,
    RangeRule::Percentile { ppm: 999_000 },
    RangeRule::Mse,
    RangeRule::Entropy,
];
const SCHEMES: [Scheme; 2] = [Scheme::Symmetric, Scheme::Affine];

fn with_histogram<const B: u32, R>(values: &[f32], read: impl FnOnce(&Histogram<'_, B>) -> R) -> R {
    let mut memory = vec![0; Histogram::<B>::BUCKETS];
    let mut histogram = Histogram::<B>::new(&mut memory).unwrap();
    histogram.push(values).unwrap();
    read(&histogram)
}

fn run<const B: u32>(values: &[f32], method: RangeRule, scheme: Scheme) -> Calibration {
    with_histogram::<B, _>(values, |histogram| {
        calibrate(histogram, method, scheme).unwrap()
    })
}

fn uniform(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / 2f64.powi(53) + 2f64.powi(-54)
}

fn normal(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let (u, v) = (uniform(&mut random), uniform(&mut random));
            ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
        })
        .collect()
}

fn laplace(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let (u, sign) = (uniform(&mut random), random.below(2) as f64 * 2.0 - 1.0);
            (-u.ln() * sign) as f32
        })
        .collect()
}

/// A ReLU's output of normal values: half zeros, one tail.
fn relu(count: usize, seed: u64) -> Vec<f32> {
    normal(count, seed)
        .into_iter()
        .map(|x| x.max(0.0))
        .collect()
}

/// Normal values, one in a thousand of them 30 times as large.
fn outliers(count: usize, seed: u64) -> Vec<f32> {
    let mut values = normal(count, seed);
    values.iter_mut().step_by(1000).for_each(|x| *x *= 30.0);
    values
}

fn error(values: &[f32], grid: &Grid) -> f64 {
    values
        .iter()
        .map(|&x| (f64::from(x) - f64::from(grid.value(grid.code(x)))).powi(2))
        .sum()
}

#[test]
fn abs_max_and_min_max_are_exact() {
    let values = [-3.0f32, 1.0, 0.5, 5.1];
    let symmetric = run::<9>(&values, RangeRule::AbsMax, Scheme::Symmetric);
    assert_eq!((symmetric.low, symmetric.high), (-5.1, 5.1));
    assert_eq!(
        symmetric.grid,
        Grid {
            scale: 5.1 / 127.0,
            zero_point: 0,
            low: -127,
            high: 127
        }
    );
    assert_eq!(
        run::<9>(&values, RangeRule::MinMax, Scheme::Symmetric),
        symmetric
    );
    let affine = run::<9>(&values, RangeRule::MinMax, Scheme::Affine);
    assert_eq!((affine.low, affine.high), (-3.0, 5.1));
    // −128 + 3 · 255 / 8.1 = −33.56
    assert_eq!(
        affine.grid,
        Grid {
            scale: 8.1f32 / 255.0,
            zero_point: -34,
            low: -128,
            high: 127
        }
    );
}

#[test]
fn affine_ranges_always_hold_zero() {
    let above = run::<9>(&[2.0, 4.0], RangeRule::MinMax, Scheme::Affine);
    assert_eq!(
        (above.low, above.grid.zero_point, above.grid.scale),
        (2.0, -128, 4.0 / 255.0)
    );
    let below = run::<9>(&[-2.0, -4.0], RangeRule::MinMax, Scheme::Affine);
    assert_eq!(
        (below.high, below.grid.zero_point, below.grid.scale),
        (-2.0, 127, 4.0 / 255.0)
    );
}

#[test]
fn percentiles_lie_within_one_bucket_of_the_exact_ones() {
    for values in [
        normal(50_000, 1),
        laplace(50_000, 2),
        relu(50_000, 3),
        outliers(50_000, 4),
    ] {
        let mut sorted = values.clone();
        sorted.sort_by(f32::total_cmp);
        let mut magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).collect();
        magnitudes.sort_by(f32::total_cmp);
        for ppm in [1, 500_000, 990_000, 999_000, 999_900, 999_990, 1_000_000] {
            let outside = values.len() * (1_000_000 - ppm as usize) / 1_000_000;
            let exact = magnitudes[values.len() - 1 - outside];
            let found = run::<HOST_BITS>(&values, RangeRule::Percentile { ppm }, Scheme::Symmetric);
            assert!(
                found.high >= exact
                    && found.high <= exact * (1.0 + 1.0 / 128.0) + f32::MIN_POSITIVE
            );
            assert_eq!(found.low, -found.high);
            assert!(magnitudes.iter().filter(|&&x| x > found.high).count() <= outside);

            let side = values.len() * (1_000_000 - ppm as usize) / 2_000_000;
            let (low, high) = (sorted[side], sorted[values.len() - 1 - side]);
            let found = run::<HOST_BITS>(&values, RangeRule::Percentile { ppm }, Scheme::Affine);
            let width = |x: f32| x.abs() / 128.0 + f32::MIN_POSITIVE;
            assert!(found.high >= high && found.high <= high + width(high));
            assert!(found.low <= low && found.low >= low - width(low));
        }
        let all = run::<9>(
            &values,
            RangeRule::Percentile { ppm: 1_000_000 },
            Scheme::Affine,
        );
        assert_eq!((all.low, all.high), (sorted[0], sorted[values.len() - 1]));
    }
}

#[test]
fn squared_error_choice_is_near_the_best_of_all_clips() {
    for (name, values) in [
        ("normal", normal(20_000, 5)),
        ("laplace", laplace(20_000, 6)),
        ("relu", relu(20_000, 7)),
        ("outliers", outliers(20_000, 8)),
    ] {
        let max = values.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let symmetric = |clip: f32| Grid {
            scale: clip / 127.0,
            zero_point: 0,
            low: -127,
            high: 127,
        };
        let best = (1..=1000)
            .map(|i| error(&values, &symmetric(max * i as f32 / 1000.0)))
            .fold(f64::INFINITY, f64::min);
        let host = error(
            &values,
            &run::<HOST_BITS>(&values, RangeRule::Mse, Scheme::Symmetric).grid,
        );
        let small = error(
            &values,
            &run::<SMALL_BITS>(&values, RangeRule::Mse, Scheme::Symmetric).grid,
        );
        let whole = error(&values, &symmetric(max));
        println!(
            "{name}: {:.4} {:.4}, unclipped {:.4} of the best",
            host / best,
            small / best,
            whole / best
        );
        assert!(host <= best * 1.02, "{name} host");
        assert!(small <= best * 1.05, "{name} small");
        assert!(host <= whole);

        // Affine: brute force over both ends.
        let (low, high) = values
            .iter()
            .fold((0.0f32, 0.0f32), |(l, h), &x| (l.min(x), h.max(x)));
        let mut best = f64::INFINITY;
        for i in 1..=40 {
            for j in 1..=40 {
                let (low, high) = (low * i as f32 / 40.0, high * j as f32 / 40.0);
                let scale = (high - low) / 255.0;
                let zero_point = (-128.0 - low / scale).round_ties_even() as i8;
                best = best.min(error(
                    &values,
                    &Grid {
                        scale,
                        zero_point,
                        low: -128,
                        high: 127,
                    },
                ));
            }
            if low == 0.0 {
                break;
            }
        }
        let found = error(
            &values,
            &run::<HOST_BITS>(&values, RangeRule::Mse, Scheme::Affine).grid,
        );
        println!("{name} affine: {:.4}", found / best);
        assert!(found <= best * 1.02, "{name} affine {found} {best}");
    }
}

/// Migacz's search as published: 2,048 equal bins of |x|, 128 levels, outliers in the last bin.
fn migacz(values: &[f32]) -> f32 {
    let max = values.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let mut bins = vec![0.0f64; 2048];
    for x in values.iter().filter(|x| **x != 0.0) {
        bins[((x.abs() / max * 2048.0) as usize).min(2047)] += 1.0;
    }
    let mut best = (f64::INFINITY, 2048);
    for i in 128..=2048 {
        let mut p = bins[..i].to_vec();
        p[i - 1] += bins[i..].iter().sum::<f64>();
        let mut q = vec![0.0; i];
        for level in 0..128 {
            let (from, to) = (level * i / 128, (level + 1) * i / 128);
            let used = p[from..to].iter().filter(|c| **c > 0.0).count() as f64;
            let mass: f64 = bins[from..to].iter().sum();
            for bin in (from..to).filter(|&bin| p[bin] > 0.0) {
                q[bin] = mass / used;
            }
        }
        let (all, kept): (f64, f64) = (p.iter().sum(), q.iter().sum());
        let divergence: f64 = p
            .iter()
            .zip(&q)
            .filter(|(p, _)| **p > 0.0)
            .map(|(p, q)| {
                if *q > 0.0 {
                    p / all * ((p / all) / (q / kept)).ln()
                } else {
                    f64::INFINITY
                }
            })
            .sum();
        if divergence < best.0 {
            best = (divergence, i);
        }
    }
    max * best.1 as f32 / 2048.0
}

#[test]
fn entropy_choice_is_near_migacz_search_on_the_data() {
    for (name, values) in [
        ("normal", normal(200_000, 9)),
        ("laplace", laplace(200_000, 10)),
        ("relu", relu(200_000, 11)),
    ] {
        let reference = migacz(&values);
        let host = run::<HOST_BITS>(&values, RangeRule::Entropy, Scheme::Symmetric).high;
        let affine = run::<HOST_BITS>(&values, RangeRule::Entropy, Scheme::Affine);
        let small = run::<SMALL_BITS>(&values, RangeRule::Entropy, Scheme::Symmetric).high;
        println!(
            "{name}: reference {reference}, host {host}, small {small}, affine {} {}",
            affine.low, affine.high
        );
        for found in [host, small, affine.high] {
            assert!(
                found > reference * 0.7 && found < reference * 1.5,
                "{name}: {found} {reference}"
            );
        }
    }
}

#[test]
fn entropy_clips_outliers() {
    let values = outliers(200_000, 12);
    let found = run::<HOST_BITS>(&values, RangeRule::Entropy, Scheme::Symmetric);
    let max = values.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    println!("{} of {max}", found.high);
    assert!(
        found.high < max / 3.0 && found.high > 2.0,
        "{} of {max}",
        found.high
    );
}

#[test]
fn extreme_and_constant_data_get_usable_grids() {
    let cases: [&[f32]; 8] = [
        &[0.0, -0.0],
        &[f32::MAX, f32::MIN],
        &[f32::MAX],
        &[f32::from_bits(1)],
        &[-f32::from_bits(1), 1.0],
        &[7.0; 100],
        &[-7.0; 3],
        &[1e-30, 1e30, -1e-10],
    ];
    for values in cases {
        for method in METHODS {
            for scheme in SCHEMES {
                let found = run::<9>(values, method, scheme);
                assert!(found.low <= found.high, "{values:?} {found:?}");
                assert!(
                    found.grid.scale >= 0.0 && found.grid.scale.is_finite(),
                    "{values:?} {found:?}"
                );
            }
        }
    }
    // A constant is kept by every method.
    for method in METHODS {
        assert_eq!(
            run::<HOST_BITS>(&[7.0; 100], method, Scheme::Symmetric).high,
            7.0,
            "{method:?}"
        );
    }
}

#[test]
fn bad_requests_are_refused() {
    with_histogram::<9, _>(&[], |histogram| {
        for method in METHODS {
            assert_eq!(
                calibrate(histogram, method, Scheme::Affine),
                Err(QuantError::Empty)
            );
        }
    });
    with_histogram::<9, _>(&[1.0], |histogram| {
        for ppm in [0, 1_000_001] {
            let refused = calibrate(histogram, RangeRule::Percentile { ppm }, Scheme::Symmetric);
            assert_eq!(refused, Err(QuantError::Percentile { ppm }));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_chunks_do_not_show(
        values in prop::collection::vec(prop_oneof![-3.0f32..3.0, -1e-3f32..1e-3, Just(0.0), 10.0f32..11.0], 1..400),
        at in 0usize..400,
    ) {
        let at = at.min(values.len());
        let (mut a, mut b, mut c) = (vec![0; 2048], vec![0; 2048], vec![0; 2048]);
        let mut whole = Histogram::<SMALL_BITS>::new(&mut a).unwrap();
        whole.push(&values).unwrap();
        let mut first = Histogram::<SMALL_BITS>::new(&mut b).unwrap();
        let mut second = Histogram::<SMALL_BITS>::new(&mut c).unwrap();
        let reversed: Vec<f32> = values[at..].iter().rev().copied().collect();
        first.push(&reversed).unwrap();
        for chunk in values[..at].chunks(5) {
            second.push(chunk).unwrap();
        }
        first.merge(&second);
        for method in METHODS {
            for scheme in SCHEMES {
                prop_assert_eq!(calibrate(&whole, method, scheme), calibrate(&first, method, scheme));
            }
        }
    }
}
