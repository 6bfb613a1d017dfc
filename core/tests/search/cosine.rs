//! Cosines against exact rationals.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use proptest::prelude::*;
use tercet_core::search::{Cosine, FloatRows, IntegerCosine, Score, SignedSquare};

use super::cases;

/// The cosine's square, with its sign: orders as the cosine does.
fn signed_square(dot: i32, norms: u64) -> BigRational {
    let dot = BigInt::from(dot);
    let square = &dot * dot.magnitude_signed();
    BigRational::new(square, BigInt::from(norms))
}

trait Magnitude {
    fn magnitude_signed(&self) -> BigInt;
}

impl Magnitude for BigInt {
    fn magnitude_signed(&self) -> BigInt {
        BigInt::from(self.magnitude().clone())
    }
}

/// A finite float as a rational.
fn exact(x: f32) -> BigRational {
    BigRational::from_float(x).unwrap()
}

/// x · |x|.
fn squared(x: &BigRational) -> BigRational {
    if *x < exact(0.0) { -(x * x) } else { x * x }
}

/// Dot products and squared lengths as rows of integers can have them: |dot| at most the root of the product.
fn ratios() -> impl Strategy<Value = (i32, u32, u32)> {
    let norm = prop_oneof![
        1u32..=64,
        1u32..715_816_960,
        (0u32..=29).prop_map(|n| 1 << n)
    ];
    (norm.clone(), norm, any::<i32>(), 0u32..31).prop_map(|(a, b, dot, shift)| {
        let most = (u64::from(a) * u64::from(b)).isqrt() as i64;
        let dot = i64::from(dot >> shift) % (most + 1);
        (dot as i32, a, b)
    })
}

/// The two floats beside `x`.
fn neighbours(x: f32) -> [f32; 2] {
    [x.next_down(), x.next_up()]
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn the_order_is_that_of_exact_rationals(a in ratios(), b in ratios()) {
        let score = |(dot, q, r)| IntegerCosine::new(dot, q, r);
        let square = |(dot, q, r): (i32, u32, u32)| signed_square(dot, u64::from(q) * u64::from(r));
        prop_assert_eq!(score(a).rank(&score(b)), square(a).cmp(&square(b)));
        prop_assert_eq!(score(a).rank(&score(a)), Ordering::Equal);
    }

    /// The value is nearer than the midpoints to both neighbours, or on one and even.
    #[test]
    fn the_value_is_rounded_once((dot, q, r) in ratios()) {
        let truth = signed_square(dot, u64::from(q) * u64::from(r));
        let value = IntegerCosine::new(dot, q, r).value();
        if dot == 0 {
            prop_assert_eq!(value.to_bits(), 0);
            return Ok(());
        }
        let [below, above] = neighbours(value).map(|other| {
            let two = BigRational::from_integer(2.into());
            squared(&((exact(other) + exact(value)) / two))
        });
        let even = value.to_bits() & 1 == 0;
        prop_assert!(below < truth || (even && below == truth));
        prop_assert!(truth < above || (even && truth == above));
    }

    #[test]
    fn a_threshold_is_met_exactly(ratio in ratios(), other in ratios(), pattern in any::<u32>(), kind in 0..4) {
        let (dot, q, r) = ratio;
        let score = IntegerCosine::new(dot, q, r);
        let threshold = match kind {
            0 => f32::from_bits(pattern),
            1 => IntegerCosine::new(other.0, other.1, other.2).value(),
            2 => neighbours(score.value())[(pattern & 1) as usize],
            _ => score.value(),
        };
        let reaches = if threshold.is_finite() {
            signed_square(dot, u64::from(q) * u64::from(r)) >= squared(&exact(threshold))
        } else {
            threshold == f32::NEG_INFINITY
        };
        prop_assert_eq!(score.reaches(threshold), reaches, "{} against {}", score.value(), threshold);
    }

    /// The f64 sequence is within 2⁻⁵⁰ of the true square, whatever the exponents, and its f32 within an ulp.
    #[test]
    fn float_cosines_are_close_whatever_the_scale(
        query in prop::collection::vec(-9i8..9, 3), row in prop::collection::vec(-9i8..9, 3),
        q_scale in -148i32..120, r_scale in -148i32..120,
    ) {
        let power = |exponent: i32| 2f64.powi(exponent) as f32;
        let scaled = |row: &[i8], scale| row.iter().map(|&x| f32::from(x) * power(scale)).collect::<Vec<_>>();
        let (q, r) = (scaled(&query, q_scale), scaled(&row, r_scale));
        let rows = FloatRows::new(&r, 3).unwrap();
        let found = super::top_k::<Cosine, _>(rows, &q, 1)[0].score;
        let sum = |a: &[i8], b: &[i8]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        let (dot, norms) = (sum(&query, &row), sum(&query, &query) * sum(&row, &row));
        let truth = if norms == 0.0 { 0.0 } else { dot / norms.sqrt() };
        prop_assert!((f64::from(found.value()) - truth).abs() <= 6e-8 * truth.abs());
    }
}

#[test]
fn halfway_cosines_go_to_even() {
    // dot / 2²⁶ with 25 bits is halfway between two floats.
    for (dot, rounded) in [(0x100_0001, 0x100_0000), (0x100_0003, 0x100_0004)] {
        let cosine = IntegerCosine::new(dot, 1 << 26, 1 << 26);
        assert_eq!(cosine.value(), rounded as f32 / 67_108_864.0);
        assert_eq!(
            IntegerCosine::new(-dot, 1 << 26, 1 << 26).value(),
            -cosine.value()
        );
    }
}

#[test]
fn zeros_have_cosine_zero() {
    let zero = IntegerCosine::new(0, 5, 0);
    assert_eq!(zero, IntegerCosine::default());
    assert_eq!(zero.value(), 0.0);
    assert!(zero.rank(&IntegerCosine::new(1, 1, 1)).is_lt());
    assert!(zero.rank(&IntegerCosine::new(-1, 1, 1)).is_gt());
    assert_eq!(SignedSquare::new(0.0, 0.0, 4.0).value(), 0.0);
}

#[test]
fn the_widest_rows_stay_exact() {
    let (n, d) = (
        BigUint::from(16_384u32),
        tercet_core::search::MAX_DIM as u32,
    );
    let norm = u32::try_from(n * d).unwrap();
    assert_eq!(IntegerCosine::new(norm as i32, norm, norm).value(), 1.0);
    assert_eq!(IntegerCosine::new(-(norm as i32), norm, norm).value(), -1.0);
    let less = IntegerCosine::new(norm as i32 - 1, norm, norm);
    assert!(
        less.rank(&IntegerCosine::new(norm as i32, norm, norm))
            .is_lt()
    );
    assert!(!less.reaches(1.0) && less.value() == 1.0);
}
