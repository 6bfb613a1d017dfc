//! Rounding, saturation and roots against std's.

use proptest::prelude::*;
use tercet_core::number::{Random, root, round};

fn check(x: f32) {
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    assert!(same(round::half_even(x), x.round_ties_even()), "{x:e}");
    assert!(same(round::half_away(x), x.round()), "{x:e}");
    assert!(same(root::sqrt_f32(x), x.sqrt()), "{x:e}");
    assert_eq!(round::half_even_i8(x), x.round_ties_even() as i8, "{x:e}");
    assert_eq!(round::half_away_i8(x), x.round() as i8, "{x:e}");
    if x.abs() <= 4_194_304.0 {
        let truth = x.round_ties_even() as i32;
        assert_eq!(round::half_even_small(x), truth, "{x:e}");
    }
}

fn check_f64(x: f64) {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    assert!(same(round::half_even_f64(x), x.round_ties_even()), "{x:e}");
    assert!(same(round::half_away_f64(x), x.round()), "{x:e}");
    assert!(same(root::sqrt_f64(x), x.sqrt()), "{x:e}");
}

/// Where the codes of a byte are: every quarter, and the floats beside it.
#[test]
fn codes_equal_std_around_every_quarter() {
    for quarter in -2000..2000 {
        let x = quarter as f32 / 4.0;
        for x in [x, x.next_up(), x.next_down()] {
            check(x);
        }
    }
}

/// 42 million patterns over the whole range; the stride is odd, so the low bits take every value.
#[test]
fn f32_rounding_and_roots_equal_std_over_all_patterns_in_a_stride() {
    for bits in (0..=u32::MAX).step_by(101) {
        check(f32::from_bits(bits));
    }
}

#[test]
fn every_f32_exponent_and_its_edges_equal_std() {
    let mut random = Random::new(1);
    let top = 0x7F_FFFF;
    for field in 0..=511u32 {
        let any = (0..200).map(|_| (random.next_u64() >> 41) as u32);
        let edges = [0, 1, 2, top / 2, top / 2 + 1, top / 2 + 2, top - 1, top];
        for mantissa in any.chain(edges) {
            check(f32::from_bits(field << 23 | mantissa));
        }
    }
    let ties = (0..200_000).map(|half| half as f32 + 0.5);
    let last = [
        4_194_302.5,
        4_194_303.5,
        4_194_304.5,
        8_388_606.5,
        8_388_607.5,
        8_388_608.0,
    ];
    for tie in ties.chain(last) {
        for x in [tie, tie.next_up(), tie.next_down()] {
            check(x);
            check(-x);
        }
    }
}

#[test]
fn every_f64_exponent_and_its_edges_equal_std() {
    let mut random = Random::new(2);
    let top = (1u64 << 52) - 1;
    for field in 0..=4095u64 {
        let any = (0..50).map(|_| random.next_u64() >> 12);
        let edges = [0, 1, 2, top / 2, top / 2 + 1, top / 2 + 2, top - 1, top];
        for mantissa in any.chain(edges) {
            check_f64(f64::from_bits(field << 52 | mantissa));
        }
    }
    let ties = (0..100_000).map(|half| f64::from(half) + 0.5);
    let whole = 4_503_599_627_370_496.0;
    for tie in ties.chain([whole / 2.0 - 0.5, whole / 2.0 + 0.5, whole - 0.5, whole]) {
        for x in [tie, tie.next_up(), tie.next_down()] {
            check_f64(x);
            check_f64(-x);
        }
    }
}

/// Squares have exact roots; their neighbours lie closest to where a root would round the other way.
#[test]
fn roots_of_squares_and_their_neighbours_equal_std() {
    let mut random = Random::new(3);
    for _ in 0..200_000 {
        let root = f32::from_bits((random.next_u64() >> 33) as u32);
        let square = root * root;
        for x in [square, square.next_up(), square.next_down()] {
            check(x);
        }
        let root = f64::from_bits(random.next_u64() >> 1);
        let square = root * root;
        for x in [square, square.next_up(), square.next_down()] {
            check_f64(x);
        }
    }
    for bits in 0..5000 {
        check(f32::from_bits(bits));
        check_f64(f64::from_bits(bits.into()));
    }
}

#[test]
fn conversions_saturate() {
    for (x, byte, word) in [
        (0.0, 0, 0),
        (-0.9, 0, 0),
        (127.9, 127, 127),
        (128.0, 127, 128),
        (-128.9, -128, -128),
        (-129.0, -128, -129),
        (2_147_483_520.0, 127, 2_147_483_520),
        (2_147_483_648.0, 127, i32::MAX),
        (-2_147_483_648.0, -128, i32::MIN),
        (1e30, 127, i32::MAX),
        (f32::INFINITY, 127, i32::MAX),
        (f32::NEG_INFINITY, -128, i32::MIN),
        (f32::NAN, 0, 0),
    ] {
        assert_eq!(round::saturate_i8(x), byte, "{x}");
        assert_eq!(round::saturate_i32(x), word, "{x}");
    }
}

#[test]
fn the_low_end_wins_when_the_range_is_empty() {
    for value in [-5, 0, 1, 2, 3, 5, i32::MAX] {
        assert_eq!(round::clamp_i8(value, 3, 1), 3, "{value}");
    }
}

proptest! {
    #[test]
    fn a_clamped_value_is_the_nearest_in_range(wide: i32, near in -300i32..300, low: i8, high: i8) {
        let (low, high) = (low.min(high), low.max(high));
        for value in [wide, near] {
            let distance = |code: &i8| (i64::from(*code) - i64::from(value)).abs();
            let nearest = (low..=high).min_by_key(distance);
            prop_assert_eq!(Some(round::clamp_i8(value, low, high)), nearest);
        }
    }
}
