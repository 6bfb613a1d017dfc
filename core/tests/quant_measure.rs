//! Error measures against plain formulas, and their independence of chunks.

use proptest::prelude::*;
use tercet_core::f16;
use tercet_core::number::{RUN, Random};
use tercet_core::quant::{Comparison, Measures, QuantError};

fn compare(original: &[f32], restored: &[f32], chunks: &[usize]) -> Measures {
    let mut comparison = Comparison::new();
    let mut start = 0;
    for &chunk in chunks.iter().chain([&usize::MAX]) {
        let end = start + chunk.min(original.len() - start);
        comparison
            .push(&original[start..end], &restored[start..end])
            .unwrap();
        start = end;
    }
    comparison.finish().unwrap()
}

/// The 64-lane order of the number rules, written from their text.
fn lanes(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 64];
    for (index, value) in values.iter().enumerate() {
        lanes[index % 64] += value;
    }
    for half in [32, 16, 8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}

fn pairs() -> impl Strategy<Value = Vec<(f32, f32)>> {
    let finite = any::<f32>().prop_filter("finite", |x| x.is_finite());
    let near = (-4.0f32..4.0, -0.1f32..0.1).prop_map(|(x, e)| (x, x + e));
    prop_oneof![
        prop::collection::vec((finite.clone(), finite), 1..200),
        prop::collection::vec(near, 1..400),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_do_not_show(pairs in pairs(), chunks in prop::collection::vec(0usize..150, 0..8)) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let (whole, parts) = (compare(&a, &b, &[]), compare(&a, &b, &chunks));
        // Debug prints floats so that they read back to the same bits.
        prop_assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
    }

    #[test]
    fn sums_follow_the_64_lane_order(pairs in pairs()) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
        let squares: Vec<f64> = pairs.iter().map(|&(a, b)| {
            let d = f64::from(a) - f64::from(b);
            d * d
        }).collect();
        let energies: Vec<f64> = a.iter().map(|&x| f64::from(x) * f64::from(x)).collect();
        let found = compare(&a, &b, &[]);
        prop_assert_eq!(found.squared_error.to_bits(), lanes(&squares).to_bits());
        prop_assert_eq!(found.energy.to_bits(), lanes(&energies).to_bits());
    }

    #[test]
    fn measures_agree_with_their_formulas(pairs in pairs()) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let found = compare(&a, &b, &[7]);
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            a.iter().zip(&b).map(|(&x, &y)| f(f64::from(x), f64::from(y))).sum()
        };
        let close = |x: f64, y: f64| x == y || (x - y).abs() <= 1e-12 * y.abs();
        let error = sum(&|x, y| (x - y) * (x - y));
        let energy = sum(&|x, _| x * x);
        prop_assert!(close(found.mse, error / a.len() as f64));
        if error > 0.0 && energy > 0.0 {
            prop_assert!(close(found.relative_error, error / energy));
            let db = 10.0 * (energy / error).log10();
            prop_assert!((found.sqnr_db - db).abs() < 1e-10, "{} {}", found.sqnr_db, db);
        }
        let norm = (energy * sum(&|_, y| y * y)).sqrt();
        if norm > 0.0 {
            prop_assert!((found.cosine - sum(&|x, y| x * y) / norm).abs() < 1e-12);
            prop_assert!((-1.0..=1.0).contains(&found.cosine));
        }
        let (index, max) = a.iter().zip(&b).map(|(&x, &y)| (f64::from(x) - f64::from(y)).abs())
            .enumerate().fold((0, 0.0), |best, (i, d)| if d > best.1 { (i as u64, d) } else { best });
        prop_assert_eq!((found.max_index, found.max_error), (index, max));
    }
}

#[test]
fn empty_zero_and_exact_tensors_have_named_measures() {
    assert!(Comparison::new().finish().is_none());
    let same = compare(&[1.0, -2.0], &[1.0, -2.0], &[]);
    assert_eq!(
        (same.relative_error, same.sqnr_db, same.cosine),
        (0.0, f64::INFINITY, 1.0)
    );
    let zeros = compare(&[0.0, -0.0], &[0.0, 0.0], &[]);
    assert_eq!(
        (zeros.relative_error, zeros.sqnr_db, zeros.cosine),
        (0.0, f64::INFINITY, 0.0)
    );
    let lost = compare(&[0.0], &[1.0], &[]);
    assert_eq!(
        (lost.relative_error, lost.sqnr_db),
        (f64::INFINITY, f64::NEG_INFINITY)
    );
    let extreme = compare(&[f32::MAX; 3], &[-f32::MAX; 3], &[]);
    assert_eq!((extreme.relative_error, extreme.cosine), (4.0, -1.0));
    let tiny = compare(&[f32::from_bits(1); 5], &[f32::from_bits(2); 5], &[]);
    assert_eq!((tiny.relative_error, tiny.cosine), (1.0, 1.0));
}

#[test]
fn halves_compare_as_their_widened_copies() {
    let mut random = Random::new(5);
    let wide: Vec<f32> = (0..300)
        .map(|_| random.below(2000) as f32 / 512.0 - 2.0)
        .collect();
    let half: Vec<f16> = wide.iter().map(|&x| f16::from_f32(x)).collect();
    let widened: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
    let mut comparison = Comparison::new();
    comparison.push(&wide, &half).unwrap();
    assert_eq!(comparison.finish(), Some(compare(&wide, &widened, &[])));
}

/// Two runs and a part, compared apart.
#[test]
fn appended_runs_are_the_stream() {
    let mut random = Random::new(6);
    let mut draw = || random.below(1 << 20) as f32 / 4096.0 - 128.0;
    let mut a: Vec<f32> = (0..2 * RUN + 99).map(|_| draw()).collect();
    let mut b: Vec<f32> = a.iter().map(|x| x + draw() / 64.0).collect();
    // Equal errors, so that the lower index has to win.
    for index in [RUN + 5, 2 * RUN + 5] {
        (a[index], b[index]) = (1.0, 100.0);
    }
    let mut whole = Comparison::new();
    whole.push(&a, &b).unwrap();
    let mut sum = Comparison::new();
    for (a, b) in a.chunks(RUN).zip(b.chunks(RUN)) {
        let mut run = Comparison::new();
        run.push(a, b).unwrap();
        assert_eq!(sum.append(&run), Some(()));
    }
    assert_eq!(format!("{sum:?}"), format!("{whole:?}"));
    assert_eq!(sum.finish().unwrap().max_index, RUN as u64 + 5);
    let before = sum.clone();
    assert_eq!(sum.append(&before), None);
    assert_eq!(Comparison::new().append(&before), None);
    assert_eq!(sum, before);
}

/// An engine's loop, in the words of [`RowSums`].
fn by_rows(comparison: &mut Comparison, a: &[f32], b: &[f32]) -> Option<()> {
    let first = comparison.count();
    comparison.push_rows(a.len() / 64, |sums| {
        for (at, (&a, &b)) in a.iter().zip(b).enumerate() {
            let (a, b) = (f64::from(a), f64::from(b));
            sums.error[at % 64] += (a - b) * (a - b);
            sums.original[at % 64] += a * a;
            sums.restored[at % 64] += b * b;
            sums.product[at % 64] += a * b;
            if (a - b).abs() > sums.max_error {
                sums.max_error = (a - b).abs();
                sums.max_index = first + at as u64;
            }
        }
    })
}

#[test]
fn rows_of_an_engine_are_as_pushed_values() {
    let mut random = Random::new(7);
    let mut draw = || random.below(1 << 20) as f32 / 4096.0 - 128.0;
    let a: Vec<f32> = (0..RUN + 640).map(|_| draw()).collect();
    let b: Vec<f32> = a.iter().map(|x| x + draw() / 64.0).collect();
    let (mut found, mut expected) = (Comparison::new(), Comparison::new());
    // To a run's end, and into the next.
    for range in [0..64, 64..64, 64..6400, 6400..RUN, RUN..RUN + 640] {
        let (a, b) = (&a[range.clone()], &b[range]);
        assert_eq!(by_rows(&mut found, a, b), Some(()));
        expected.push(a, b).unwrap();
        assert_eq!(found, expected);
    }
    // Beyond the run, off a row's start, and of what is not finite: nothing.
    assert_eq!(by_rows(&mut found, &a[..RUN], &b[..RUN]), None);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (a, b) in [
            ([bad; 64], [bad; 64]),
            ([bad; 64], [0.0; 64]),
            ([0.0; 64], [bad; 64]),
        ] {
            assert_eq!(by_rows(&mut found, &a, &b), None);
        }
    }
    assert_eq!(found, expected);
    found.push(&[0.0f32], &[0.0f32]).unwrap();
    assert_eq!(by_rows(&mut found, &a[..64], &b[..64]), None);
}

#[test]
fn bad_input_is_refused_with_its_index_in_the_stream() {
    let mut comparison = Comparison::new();
    comparison.push(&[1.0f32; 70], &[1.0f32; 70]).unwrap();
    let refused = comparison.push(&[1.0f32, 2.0], &[1.0f32, f32::NAN]);
    assert_eq!(refused, Err(QuantError::NotFinite { index: 71 }));
    let refused = comparison.push(&[1.0f32], &[1.0f32; 2]);
    assert_eq!(
        refused,
        Err(QuantError::Length {
            expected: 1,
            found: 2
        })
    );
}
