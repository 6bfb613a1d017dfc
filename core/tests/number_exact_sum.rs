//! The exact sum against rationals of any size, and its laws.

use std::cmp::Ordering;

use half::{bf16, f16};
use num_bigint::BigUint;
use num_rational::Ratio;
use proptest::prelude::*;
use tercet_core::number::{Element, ExactSum, Random, bits};

type Rational = Ratio<BigUint>;

/// |x| as an integer multiple of 2⁻¹⁴⁹, from the definition of the format.
fn units(x: f32) -> BigUint {
    let bits = x.abs().to_bits();
    match bits >> 23 {
        0 => BigUint::from(bits),
        field => BigUint::from(bits & 0x7F_FFFF | 0x80_0000) << (field - 1),
    }
}

fn units_of<T: Element>(values: &[T]) -> BigUint {
    values.iter().map(|value| units(value.to_f32())).sum()
}

fn sum_of<T: Element>(values: &[T]) -> ExactSum {
    let mut sum = ExactSum::ZERO;
    sum.add_slice(values);
    sum
}

fn sum_one_by_one(values: &[f32]) -> ExactSum {
    let mut sum = ExactSum::ZERO;
    for &value in values {
        sum.add(value);
    }
    sum
}

/// The state of a sum of `units`.
fn sum_of_units(units: &BigUint) -> ExactSum {
    let mut sum = ExactSum::ZERO;
    for (place, limb) in units.iter_u64_digits().enumerate() {
        sum.add_shifted(limb, 64 * place as u32);
    }
    sum
}

/// Asserts that `result` is the float nearest to `units · 2⁻¹⁴⁹`, the even one of two, by comparing with the
/// midpoints to its neighbours. Uses nothing of the code under test.
fn assert_nearest(exact: &Rational, result: f32) {
    assert!(result >= 0.0, "{result} is not a magnitude");
    let twice = exact * BigUint::from(2u8);
    // 2¹²⁸ stands for infinity here, as rounding sees it.
    let value = |pattern: u32| match pattern {
        0x7F80_0000 => Rational::from(BigUint::from(1u8) << (128 + 149)),
        _ => Rational::from(units(f32::from_bits(pattern))),
    };
    let pattern = result.to_bits();
    let even = pattern & 1 == 0;
    if pattern > 0 {
        match (value(pattern - 1) + value(pattern)).cmp(&twice) {
            Ordering::Less => {}
            Ordering::Equal => assert!(even, "{result:e}: the lower neighbour is even"),
            Ordering::Greater => panic!("{result:e} lies too high"),
        }
    }
    if pattern < 0x7F80_0000 {
        match (value(pattern) + value(pattern + 1)).cmp(&twice) {
            Ordering::Greater => {}
            Ordering::Equal => assert!(even, "{result:e}: the upper neighbour is even"),
            Ordering::Less => panic!("{result:e} lies too low"),
        }
    }
}

/// Values of one of several kinds, so that each path of `add_slice` is taken.
fn values(random: &mut Random, kind: u64, len: usize) -> Vec<f32> {
    let pattern = |random: &mut Random, fields: std::ops::Range<u64>| {
        let field = fields.start + random.below(fields.end - fields.start);
        let bits = (field as u32) << 23 | (random.next_u64() >> 41) as u32;
        f32::from_bits(bits | ((random.next_u64() >> 63) as u32) << 31)
    };
    let center = random.below(254) + 1;
    (0..len)
        .map(|_| match kind {
            // Any finite pattern.
            0 => pattern(random, 0..255),
            // Within the spread that f64 takes.
            1 => pattern(random, center.saturating_sub(10)..center + 1),
            // Around the spread that f64 takes.
            2 => pattern(random, center.saturating_sub(22)..center + 1),
            // Around the spread that 64 bits take.
            3 => pattern(random, center.saturating_sub(34)..center + 1),
            // Subnormals and zeros.
            4 => pattern(random, 0..1) * random.below(2) as f32,
            // The smallest normals and subnormals.
            5 => pattern(random, 0..3),
            // The largest.
            6 => pattern(random, 252..255),
            // Normal values with zeros among them.
            _ => random.normal() * random.below(2) as f32,
        })
        .collect()
}

#[test]
fn sums_and_means_equal_exact_rationals() {
    let mut random = Random::new(1);
    for round in 0..4000 {
        let len = random.below(600) as usize;
        let values = values(&mut random, round % 8, len);
        let truth = units_of(&values);
        let sum = sum_of(&values);
        assert_eq!(sum, sum_of_units(&truth), "round {round}");
        assert_eq!(sum, sum_one_by_one(&values), "round {round}");
        assert_nearest(&Rational::from(truth.clone()), sum.to_f32());
        for n in [1, len as u64, 3, random.next_u64(), u64::MAX] {
            let Some(mean) = sum.mean(n) else {
                assert_eq!(n, 0);
                continue;
            };
            assert_nearest(&Rational::new(truth.clone(), n.into()), mean);
        }
    }
}

#[test]
fn a_slice_of_halves_sums_as_its_widened_copy() {
    let mut random = Random::new(2);
    for _ in 0..500 {
        let len = random.below(600) as usize;
        let f16s: Vec<f16> = (0..len)
            .map(|_| f16::from_bits(random.next_u64() as u16))
            .filter(|x| x.is_finite())
            .collect();
        assert_eq!(sum_of(&f16s), sum_of_units(&units_of(&f16s)));
        let narrow = random.below(40) + 1;
        let bf16s: Vec<bf16> = (0..len)
            .map(|_| bf16::from_bits((random.below(narrow * 0x80) + 0x2000) as u16))
            .collect();
        assert_eq!(sum_of(&bf16s), sum_of_units(&units_of(&bf16s)));
    }
}

/// Blocks at the very edge of what f64 and 64 bits hold: 255 largest values of an exponent and one
/// smallest value `spread` exponents below.
#[test]
fn blocks_at_the_edge_of_each_path_are_exact() {
    for top in [0u32, 1, 20, 21, 22, 31, 32, 33, 34, 35, 127, 253, 254] {
        for spread in (0..=40).filter(|&spread| spread <= top) {
            for low in [0, 1, 0x7F_FFFF] {
                let mut values = [f32::from_bits(top << 23 | 0x7F_FFFF); 256];
                values[200] = f32::from_bits((top - spread) << 23 | low);
                assert_eq!(sum_of(&values), sum_of_units(&units_of(&values)));
                values[3] = -0.0;
                assert_eq!(sum_of(&values), sum_of_units(&units_of(&values)));
            }
        }
    }
    for top in 38..255u16 {
        for spread in 34..=40u16 {
            let Some(field) = top.checked_sub(spread) else {
                continue;
            };
            let mut values = [bf16::from_bits(top << 7 | 0x7F); 256];
            values[77] = bf16::from_bits(field << 7 | 1);
            assert_eq!(sum_of(&values), sum_of_units(&units_of(&values)));
        }
    }
    let largest = [f16::MAX; 256];
    assert_eq!(sum_of(&largest), sum_of_units(&units_of(&largest)));
    let mut spread = [f16::MAX; 256];
    spread[255] = f16::from_bits(1);
    assert_eq!(sum_of(&spread), sum_of_units(&units_of(&spread)));
}

/// What a slice with infinities or NaN counts is said in `add`, and all paths say the same.
#[test]
fn values_that_are_not_finite_count_alike_on_every_path() {
    let mut random = Random::new(3);
    for _ in 0..200 {
        let values: Vec<f32> = (0..300)
            .map(|_| f32::from_bits(random.next_u64() as u32 | 0x7000_0000))
            .collect();
        assert_eq!(sum_of(&values), sum_one_by_one(&values));
    }
}

#[test]
fn ties_go_to_even_and_anything_more_goes_up() {
    // Half of the smallest subnormal is a tie with zero, and zero is even.
    let subnormal = f32::from_bits;
    let smallest = subnormal(1);
    assert_eq!(sum_of(&[smallest]).mean(2), Some(0.0));
    assert_eq!(sum_of(&[subnormal(3)]).mean(2), Some(subnormal(2)));
    assert_eq!(sum_of(&[subnormal(5)]).mean(2), Some(subnormal(2)));
    assert_eq!(sum_of(&[smallest]).mean(u64::MAX), Some(0.0));
    // Just above and just below half a unit: what remains of the division decides.
    let half = subnormal(1 << 22);
    assert_eq!(sum_of(&[half]).mean((1 << 23) - 1), Some(smallest));
    assert_eq!(sum_of(&[half]).mean(1 << 23), Some(0.0));
    assert_eq!(sum_of(&[half]).mean((1 << 23) + 1), Some(0.0));
    // 2⁶³ / (2⁶⁴ − 1) is above ½ by less than 2⁻⁶⁴, which only the remainder shows.
    for even in [0u32, 2, 4, 0x1000] {
        let units = BigUint::from(u64::MAX) * even + (BigUint::from(1u8) << 63);
        let mean = sum_of_units(&units).mean(u64::MAX);
        assert_eq!(mean, Some(subnormal(even + 1)));
    }
    // 1 + 2⁻²⁴ is a tie with 1; the smallest subnormal beside it decides.
    let tie = 2f32.powi(-24);
    assert_eq!(sum_of(&[1.0, tie]).to_f32(), 1.0);
    assert_eq!(sum_of(&[1.0, tie, smallest]).to_f32(), 1.0 + f32::EPSILON);
    // (1 + 2⁻²³) + 2⁻²⁴ is a tie with the even neighbour above.
    let odd = 1.0 + f32::EPSILON;
    assert_eq!(sum_of(&[odd, tie]).to_f32(), 1.0 + 2.0 * f32::EPSILON);
    // A carry out of the subnormals, out of a mantissa, and out of the format.
    let carry = sum_of(&[subnormal(0x7F_FFFF), smallest]);
    assert_eq!(carry.to_f32(), f32::MIN_POSITIVE);
    let below_two = 2.0 - f32::EPSILON;
    assert_eq!(sum_of(&[below_two, tie / 2.0]).to_f32(), below_two);
    assert_eq!(sum_of(&[below_two, tie]).to_f32(), 2.0);
    assert_eq!(sum_of(&[f32::MAX, 2f32.powi(102)]).to_f32(), f32::MAX);
    assert_eq!(sum_of(&[f32::MAX, 2f32.powi(103)]).to_f32(), f32::INFINITY);
}

#[test]
fn the_mean_of_equal_values_is_the_value() {
    for x in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1), 0.1, 0.0] {
        for n in [1usize, 3, 255, 256, 257, 100_000] {
            assert_eq!(sum_of(&vec![-x; n]).mean(n as u64), Some(x));
        }
        // As many as can be counted.
        let most = units(x) * BigUint::from(u64::MAX);
        assert!(most.bits() <= 341);
        assert_eq!(sum_of_units(&most).mean(u64::MAX), Some(x));
    }
    assert_eq!(ExactSum::ZERO.mean(0), None);
    assert_eq!(ExactSum::ZERO.mean(1), Some(0.0));
}

#[test]
fn mantissas_of_one_exponent_add_at_once() {
    let mut random = Random::new(4);
    for field in 0..255u32 {
        let values: Vec<f32> = (0..100)
            .map(|_| f32::from_bits(field << 23 | (random.next_u64() >> 41) as u32))
            .collect();
        let mantissas = values
            .iter()
            .map(|&x| u64::from(bits::mantissa(bits::magnitude(x))));
        let mut sum = ExactSum::ZERO;
        sum.add_mantissas(mantissas.sum(), field << 23);
        assert_eq!(sum, sum_of(&values));
    }
}

fn any_units(random: &mut Random, bits: u64) -> BigUint {
    let all = (0..6).fold(BigUint::default(), |all, _| (all << 64) + random.next_u64());
    all >> (384 - bits)
}

#[test]
fn f64_of_the_sum_is_nearest() {
    let mut random = Random::new(5);
    for round in 0..6000u64 {
        let bits = 1 + random.below(384);
        let mut units = any_units(&mut random, bits);
        if round % 2 == 0 && units.bits() > 60 {
            // 53 bits, then a one and zeros: a tie; or one unit off it.
            let below = units.bits() - 53;
            units = ((units >> below) << 1 | BigUint::from(1u8)) << (below - 1);
            match random.below(3) {
                0 => units += 1u8,
                1 => units -= 1u8,
                _ => {}
            }
        }
        // All as multiples of 2⁻²¹⁰, so that midpoints are integers.
        let scaled = |x: f64| {
            let place = (x.to_bits() >> 52) as i64 - 1075 + 210;
            BigUint::from(x.to_bits() & ((1 << 52) - 1) | (1 << 52)) << place
        };
        let result = sum_of_units(&units).to_f64();
        if units == BigUint::default() {
            assert_eq!(result, 0.0);
            continue;
        }
        let twice: BigUint = units << (210 - 149 + 1);
        let below = scaled(result.next_down()) + scaled(result);
        let above = scaled(result) + scaled(result.next_up());
        let even = result.to_bits() & 1 == 0;
        assert!(below < twice || (below == twice && even), "{result:e}");
        assert!(twice < above || (above == twice && even), "{result:e}");
    }
    assert_eq!(sum_of(&[f32::from_bits(1)]).to_f64(), 2f64.powi(-149));
}

#[test]
fn squares_compare_exactly() {
    let mut random = Random::new(6);
    let mut seen = [0; 3];
    for round in 0..40_000 {
        let bits = 1 + random.below(384);
        let a = any_units(&mut random, bits);
        let k = random.next_u64() >> random.below(64);
        let (k_a, b, k_b) = match round % 4 {
            0 => {
                let bits = 1 + random.below(384);
                (
                    k,
                    any_units(&mut random, bits),
                    random.next_u64() >> random.below(64),
                )
            }
            // Equal, and one unit apart: far inside the margin of f64.
            1 => (k, a.clone(), k),
            2 => (k, &a + 1u8, k),
            // (3a)² · k = a² · 9k, then perhaps one unit off.
            _ => (k / 9 * 9, &a * 3u8 + random.below(2), k / 9),
        };
        if b.bits() > 384 {
            continue;
        }
        let truth = (&a * &a * k_a).cmp(&(&b * &b * k_b));
        seen[(truth as i8 + 1) as usize] += 1;
        let (left, right) = (sum_of_units(&a), sum_of_units(&b));
        assert_eq!(left.cmp_squares(k_a, &right, k_b), truth);
        assert_eq!(right.cmp_squares(k_b, &left, k_a), truth.reverse());
        assert_eq!(left.cmp(&right), a.cmp(&b));
        let difference = (a >= b).then(|| sum_of_units(&(a - b)));
        assert_eq!(left.checked_sub(&right), difference);
    }
    assert!(seen.iter().all(|&count| count > 1000), "{seen:?}");
}

fn any_finite() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(|bits| {
        let x = f32::from_bits(bits);
        if x.is_finite() {
            x
        } else {
            f32::from_bits(bits & 0x807F_FFFF)
        }
    })
}

proptest! {
    #[test]
    fn bits_do_not_depend_on_split_or_merge_order(
        values in prop::collection::vec(any_finite(), 0..1500),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        order in any::<u64>(),
    ) {
        let whole = sum_of(&values);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(values.len() + 1)).collect();
        cuts.extend([0, values.len()]);
        cuts.sort_unstable();
        let mut parts: Vec<ExactSum> = cuts
            .windows(2)
            .map(|cut| sum_of(&values[cut[0]..cut[1]]))
            .collect();
        let mut random = Random::new(order);
        let mut merged = ExactSum::ZERO;
        while !parts.is_empty() {
            let next = random.below(parts.len() as u64) as usize;
            merged.merge(&parts.swap_remove(next));
        }
        prop_assert_eq!(merged, whole);
        let reversed: Vec<f32> = values.into_iter().rev().collect();
        prop_assert_eq!(sum_of(&reversed), whole);
    }

    #[test]
    fn what_was_merged_can_be_taken_away(
        left in prop::collection::vec(any_finite(), 0..300),
        right in prop::collection::vec(any_finite(), 0..300),
    ) {
        let (left, right) = (sum_of(&left), sum_of(&right));
        let mut both = left;
        both.merge(&right);
        prop_assert_eq!(both.checked_sub(&right), Some(left));
        prop_assert_eq!(left.checked_sub(&both).is_some(), right.is_zero());
    }
}
