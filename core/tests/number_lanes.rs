//! The float reductions against loops written from the rule.

use half::{bf16, f16};
use proptest::prelude::*;
use tercet_core::number::{
    Lanes, RUN, Random, dot, squared_distance, squared_error, sum_of_squares,
};

/// The rule, with lanes and runs that are absent until a term reaches them.
macro_rules! by_the_rule {
    ($terms:expr, $float:ty) => {{
        let terms: Vec<$float> = $terms.collect();
        let plus = |a: Option<$float>, b: Option<$float>| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        let mut sum = None;
        for run in terms.chunks(65_536) {
            let mut lanes: [Option<$float>; 64] = [None; 64];
            for (index, &term) in run.iter().enumerate() {
                lanes[index % 64] = plus(lanes[index % 64], Some(term));
            }
            for half in [32, 16, 8, 4, 2, 1] {
                for lane in 0..half {
                    lanes[lane] = plus(lanes[lane], lanes[lane + half]);
                }
            }
            sum = plus(sum, lanes[0]);
        }
        sum.unwrap_or(0.0).to_bits()
    }};
}

fn normals(random: &mut Random, len: usize) -> Vec<f32> {
    (0..len).map(|_| random.normal()).collect()
}

#[test]
fn every_reduction_follows_the_rule_at_every_length() {
    let mut random = Random::new(1);
    for len in (0..=200).chain([
        1000,
        4095,
        4096,
        4097,
        RUN - 1,
        RUN,
        RUN + 1,
        RUN + 64,
        2 * RUN,
        5 * RUN + 777,
    ]) {
        let (a, b) = (normals(&mut random, len), normals(&mut random, len));
        let pairs = || a.iter().zip(&b).map(|(&a, &b)| (a, b));
        let wide = || pairs().map(|(a, b)| (f64::from(a), f64::from(b)));

        let truth = by_the_rule!(pairs().map(|(a, b)| a * b), f32);
        assert_eq!(dot(&a, &b).map(f32::to_bits), Some(truth));
        let truth = by_the_rule!(pairs().map(|(a, b)| (a - b) * (a - b)), f32);
        assert_eq!(squared_distance(&a, &b).map(f32::to_bits), Some(truth));
        let truth = by_the_rule!(wide().map(|(a, b)| (a - b) * (a - b)), f64);
        assert_eq!(squared_error(&a, &b).map(f64::to_bits), Some(truth));
        let truth = by_the_rule!(wide().map(|(a, _)| a * a), f64);
        assert_eq!(sum_of_squares(&a).to_bits(), truth);
        let mut products = Lanes::<f64>::new();
        assert_eq!(products.products(&a, &b), Some(()));
        let truth = by_the_rule!(wide().map(|(a, b)| a * b), f64);
        assert_eq!(products.total().to_bits(), truth);
    }
}

/// Other orders give other bits, so following this one can be told.
#[test]
fn another_order_gives_other_bits() {
    let mut random = Random::new(2);
    let (a, b) = (normals(&mut random, 1000), normals(&mut random, 1000));
    let plain: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    assert_ne!(dot(&a, &b), Some(plain));
}

/// A +0 in a lane without terms would turn these sums into +0.
#[test]
fn missing_lanes_leave_the_sign_of_zero() {
    for len in [1, 2, 31, 63, 64, 65, RUN, RUN + 1, 3 * RUN] {
        let (a, b) = (vec![-0.0f32; len], vec![1.0f32; len]);
        assert_eq!(dot(&a, &b).map(f32::to_bits), Some((-0.0f32).to_bits()));
    }
    let none: [f32; 0] = [];
    assert_eq!(dot(&none, &none).map(f32::to_bits), Some(0));
    assert_eq!(sum_of_squares(&none).to_bits(), 0);
}

#[test]
fn lengths_that_differ_are_refused_and_add_nothing() {
    assert_eq!(dot(&[1.0f32], &[1.0f32, 2.0]), None);
    assert_eq!(squared_distance(&[1.0f32; 3], &[1.0f32; 2]), None);
    assert_eq!(squared_error(&[1.0f32; 65], &[1.0f32; 64]), None);
    let mut lanes = Lanes::<f64>::new();
    lanes.squares(&[3.0f32]);
    let before = lanes;
    assert_eq!(lanes.squared_error(&[1.0f32], &[1.0f32, 2.0]), None);
    assert_eq!(lanes, before);
}

#[test]
fn halves_reduce_as_their_widened_copies() {
    let mut random = Random::new(3);
    let a = normals(&mut random, 333).into_iter().map(f16::from_f32);
    let b = normals(&mut random, 333).into_iter().map(bf16::from_f32);
    let (a, b): (Vec<f16>, Vec<bf16>) = (a.collect(), b.collect());
    let wide_a: Vec<f32> = a.iter().map(|a| a.to_f32()).collect();
    let wide_b: Vec<f32> = b.iter().map(|b| b.to_f32()).collect();
    assert_eq!(dot(&a, &b), dot(&wide_a, &wide_b));
    assert_eq!(squared_error(&a, &b), squared_error(&wide_a, &wide_b));
}

fn squared_errors(a: &[f32], b: &[f32]) -> Lanes<f64> {
    let mut lanes = Lanes::<f64>::new();
    lanes.squared_error(a, b).unwrap();
    lanes
}

/// All of the state: `Debug` prints floats so that they read back to the same bits.
fn state(lanes: &Lanes<f64>) -> String {
    format!("{lanes:?}")
}

/// Runs that are summed apart, last first, and appended in order.
#[test]
fn appended_runs_are_the_stream() {
    let mut random = Random::new(4);
    for len in [0, 1, 500, RUN - 1, RUN, RUN + 1, 2 * RUN, 4 * RUN + 333] {
        let (a, b) = (normals(&mut random, len), normals(&mut random, len));
        let (runs, stream) = (|| a.chunks(RUN).zip(b.chunks(RUN)), squared_errors(&a, &b));
        let parts: Vec<_> = runs().rev().map(|(a, b)| squared_errors(a, b)).collect();
        let mut sum = Lanes::<f64>::new();
        for part in parts.iter().rev() {
            assert_eq!(sum.append(part), Some(()));
        }
        assert_eq!((state(&sum), sum.count()), (state(&stream), len as u64));
        // And on from there, across the next end of a run.
        let more = normals(&mut random, RUN + 7);
        let [mut sum, mut stream] = [sum, stream];
        sum.squares(&more);
        stream.squares(&more);
        assert_eq!(state(&sum), state(&stream));
    }
}

#[test]
fn parts_that_would_break_the_order_are_refused() {
    let ones = vec![1.0f32; 2 * RUN];
    let sum = |len: usize| {
        let mut lanes = Lanes::<f64>::new();
        lanes.squares(&ones[..len]);
        lanes
    };
    for (own, next) in [
        (1, 1),
        (RUN - 1, 1),
        (RUN + 1, RUN),
        (0, RUN + 1),
        (RUN, 2 * RUN),
    ] {
        let mut lanes = sum(own);
        assert_eq!(lanes.append(&sum(next)), None, "{own}, {next}");
        assert_eq!(state(&lanes), state(&sum(own)));
    }
}

/// Ones that are added one by one to 2²⁴ in f32 are lost.
#[test]
fn runs_keep_long_sums_close() {
    let mut a = vec![1.0f32; 4 * RUN];
    a[0] = 16_777_216.0;
    let b = vec![1.0f32; a.len()];
    let truth = 16_777_216.0 + (a.len() - 1) as f64;
    let off = (f64::from(dot(&a, &b).unwrap()) - truth).abs();
    // What lane 0 loses of the first run.
    assert!(off <= 1024.0, "{off}");
}

proptest! {
    #[test]
    fn bits_do_not_depend_on_chunks(
        seed in any::<u64>(),
        chunks in prop::collection::vec(prop_oneof![9 => 0usize..200, 1 => 0..2 * RUN], 0..12),
    ) {
        let mut random = Random::new(seed);
        let len = chunks.iter().sum();
        let (a, b) = (normals(&mut random, len), normals(&mut random, len));
        let (mut errors, mut squares) = (Lanes::<f64>::new(), Lanes::<f64>::new());
        let mut dots = Lanes::<f32>::new();
        let mut start = 0;
        for chunk in chunks {
            let (a, b) = (&a[start..start + chunk], &b[start..start + chunk]);
            prop_assert_eq!(errors.squared_error(a, b), Some(()));
            prop_assert_eq!(dots.dot(a, b), Some(()));
            squares.squares(a);
            start += chunk;
        }
        prop_assert_eq!(Some(errors.total().to_bits()), squared_error(&a, &b).map(f64::to_bits));
        prop_assert_eq!(Some(dots.total().to_bits()), dot(&a, &b).map(f32::to_bits));
        prop_assert_eq!(squares.total().to_bits(), sum_of_squares(&a).to_bits());
    }
}
