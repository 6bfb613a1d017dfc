//! Ternary rules: golden values, laws, and the exact optimum against exhaustive search.

use crate::support::{self, Ternary, finite, ternary_of, vectors};
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use tercet_core::engine::MagnitudeBin;
use tercet_core::number::bits::magnitude;
use tercet_core::number::{ExactSum, round};
use tercet_core::quant::optimal::MIN_BINS;
use tercet_core::quant::ternary::{self, decide};
use tercet_core::quant::{
    Groups, Method, QuantError, Rule, ScaleRule, quantize, quantize_in_order,
};
use tercet_core::{bf16, f16};

const RULES: [Rule; 4] = [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal];
const SCALES: [ScaleRule; 2] = [ScaleRule::Rule, ScaleRule::LeastSquares];

/// |x| in units of 2⁻¹⁴⁹, exactly.
fn units(x: f32) -> BigInt {
    let ratio = BigRational::from_float(x.abs()).expect("finite");
    (ratio * BigRational::from(BigInt::from(1) << 149)).to_integer()
}

/// S and k of the values that `coded` takes. The error with the best scale is Σx² − S²/k.
fn sum_and_count(units: &[BigInt], coded: impl Fn(usize) -> bool) -> (BigInt, u32) {
    let kept = (0..units.len()).filter(|&i| coded(i));
    kept.fold((BigInt::ZERO, 0), |(sum, count), i| {
        (sum + &units[i], count + 1)
    })
}

proptest! {
    #![proptest_config(support::cases(150))]

    /// Every one of the 2ⁿ supports is tried, in exact integers.
    #[test]
    fn optimal_is_the_least_over_all_supports(values in vectors(1..=12)) {
        let decision = decide(&values, Rule::Optimal, ScaleRule::Rule).unwrap();
        let units: Vec<_> = values.iter().map(|&x| units(x)).collect();
        let (sum, count) = sum_and_count(&units, |i| decision.code(values[i]) != 0);
        prop_assert_eq!(count == 0, values.iter().all(|&x| x == 0.0));
        for support in 1u32..1 << values.len() {
            let (other, others) = sum_and_count(&units, |i| support >> i & 1 == 1);
            let (found, other) = (&sum * &sum * others, &other * &other * count);
            prop_assert!(found > other || (found == other && count <= others), "{support:b} is better");
        }
    }

    /// Sorting a block and searching its bins are two roads to one answer.
    #[test]
    fn block_decision_equals_driver(values in vectors(1..=256)) {
        for rule in RULES {
            for scale_rule in SCALES {
                let decision = decide(&values, rule, scale_rule).unwrap();
                let whole = ternary_of(&values, Groups::tensor(values.len()).unwrap(), rule, scale_rule, 0);
                let codes: Vec<i8> = values.iter().map(|&x| decision.code(x)).collect();
                prop_assert_eq!(&whole.codes, &codes);
                prop_assert_eq!(whole.scales[0].to_bits(), decision.scale.to_bits());
            }
        }
    }

    /// More than 256 values go through bins; padding a block with zeros takes it there and must not change it.
    #[test]
    fn search_equals_sort(
        values in vectors(1..=256),
        bins in prop::sample::select(vec![MIN_BINS, 200, 256, 257, 512, 4096, 65_536]),
    ) {
        let decision = decide(&values, Rule::Optimal, ScaleRule::Rule).unwrap();
        let mut padded = values.clone();
        padded.resize(values.len() + 257, 0.0);
        let found = ternary_of(&padded, Groups::tensor(padded.len()).unwrap(), Rule::Optimal, ScaleRule::Rule, bins);
        let codes: Vec<i8> = padded.iter().map(|&x| decision.code(x)).collect();
        prop_assert_eq!(found.codes, codes);
        prop_assert_eq!(found.scales[0].to_bits(), decision.scale.to_bits());
    }

    /// f is S²/k = 1 at every k when the k-th magnitude is √k − √(k−1): no bin can be ruled out early.
    #[test]
    fn search_equals_scan_on_nearly_constant_f(len in 257usize..700, exponent in -140i32..100) {
        let unit = 2f64.powi(exponent);
        let values: Vec<f32> = (0..len)
            .map(|k| (((k + 1) as f64).sqrt() - (k as f64).sqrt()) * unit)
            .map(|x| x as f32)
            .collect();
        check_against_scan(&values, 256);
        check_against_scan(&values, 2048);
    }

    #[test]
    fn search_equals_scan_on_any_bits(values in vectors(257..600)) {
        check_against_scan(&values, 256);
        check_against_scan(&values, 1024);
    }

    /// The sign mirrors, and scaling by a power of two moves only the scale.
    #[test]
    fn negation_and_powers_of_two_commute(
        values in prop::collection::vec(-4f32..4.0, 1..=256), power in -20i32..20,
    ) {
        let unit = 2f32.powi(power);
        let turned: Vec<f32> = values.iter().map(|x| -x * unit).collect();
        for rule in [Rule::AbsMax, Rule::AbsMean, Rule::Optimal] {
            let (a, b) = (decide(&values, rule, ScaleRule::Rule).unwrap(), decide(&turned, rule, ScaleRule::Rule).unwrap());
            prop_assert_eq!((a.scale * unit).to_bits(), b.scale.to_bits());
            for (&x, &y) in values.iter().zip(&turned) {
                prop_assert_eq!(a.code(x), -b.code(y));
            }
        }
    }

    /// A tensor of halves gives what its widened copy gives.
    #[test]
    fn halves_equal_their_widened_copy(bits in prop::collection::vec(any::<u16>(), 1..=256)) {
        for rule in RULES {
            let half: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).filter(|x| x.is_finite()).collect();
            let brain: Vec<bf16> = bits.iter().map(|&b| bf16::from_bits(b)).filter(|x| x.is_finite()).collect();
            let wide_half: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
            let wide_brain: Vec<f32> = brain.iter().map(|x| x.to_f32()).collect();
            prop_assert_eq!(decide(&half, rule, ScaleRule::Rule), decide(&wide_half, rule, ScaleRule::Rule));
            prop_assert_eq!(decide(&brain, rule, ScaleRule::Rule), decide(&wide_brain, rule, ScaleRule::Rule));
        }
    }

    /// The threshold says what the rule's own formula says, value by value.
    #[test]
    fn codes_follow_the_formula(values in vectors(1..=256)) {
        let mut sum = ExactSum::ZERO;
        values.iter().for_each(|&x| sum.add(x));
        let mean = sum.mean(values.len() as u64).unwrap();
        let max = values.iter().fold(0f32, |a, x| a.max(x.abs()));
        if (1.0 / max).is_finite() {
            let decision = decide(&values, Rule::AbsMax, ScaleRule::Rule).unwrap();
            for &x in &values {
                prop_assert_eq!(f32::from(decision.code(x)), round::half_away(x * (1.0 / max)) + 0.0);
            }
        }
        if (1.0 / mean).is_finite() {
            let decision = decide(&values, Rule::AbsMean, ScaleRule::Rule).unwrap();
            for &x in &values {
                let code = round::half_even(x * (1.0 / mean)).clamp(-1.0, 1.0);
                prop_assert_eq!(f32::from(decision.code(x)), code + 0.0);
            }
        }
        let decision = decide(&values, Rule::Twn, ScaleRule::Rule).unwrap();
        for &x in &values {
            prop_assert_eq!(decision.code(x) != 0, x.abs() > 0.7 * mean);
        }
    }

    /// No scale does better for the codes chosen than the least-squares one, up to the scale's own rounding.
    #[test]
    fn least_squares_scale_is_the_mean_of_coded(values in prop::collection::vec(finite(), 1..=256)) {
        for rule in RULES {
            let decision = decide(&values, rule, ScaleRule::LeastSquares).unwrap();
            let mut sum = ExactSum::ZERO;
            let mut coded = 0;
            for x in values.iter().filter(|&&x| decision.code(x) != 0) {
                sum.add(*x);
                coded += 1;
            }
            prop_assert_eq!(decision.scale, sum.mean(coded).unwrap_or(0.0));
        }
    }
}

/// Compares the search with an exact scan of all thresholds in descending order.
fn check_against_scan(values: &[f32], bins: usize) {
    let found = ternary_of(
        values,
        Groups::tensor(values.len()).unwrap(),
        Rule::Optimal,
        ScaleRule::Rule,
        bins,
    );
    let mut magnitudes: Vec<f32> = values
        .iter()
        .map(|x| x.abs())
        .filter(|&x| x > 0.0)
        .collect();
    magnitudes.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best, mut best_len) = (ExactSum::ZERO, ExactSum::ZERO, 0u64);
    for (index, &x) in magnitudes.iter().enumerate() {
        sum.add(x);
        let len = index as u64 + 1;
        if best_len == 0 || sum.cmp_squares(best_len, &best, len).is_gt() {
            (best, best_len) = (sum, len);
        }
    }
    assert_eq!(found.report.coded, best_len);
    assert_eq!(found.scales[0], best.mean(best_len).unwrap_or(0.0));
    let cut = magnitudes
        .get((best_len as usize).wrapping_sub(1))
        .copied()
        .unwrap_or(f32::INFINITY);
    for (&x, &code) in values.iter().zip(&found.codes) {
        let expected = if x.abs() >= cut { x.signum() as i8 } else { 0 };
        assert_eq!(code, expected);
    }
}

#[test]
fn golden_blocks() {
    let values = [1.0f32, -0.5, 0.49, 0.25, -0.0, 0.0, 0.76, -1.5];
    let codes = |rule| {
        let decision = decide(&values, rule, ScaleRule::Rule).unwrap();
        (values.map(|x| decision.code(x)), decision.scale)
    };
    assert_eq!(codes(Rule::AbsMax), ([1, 0, 0, 0, 0, 0, 1, -1], 1.5));
    assert_eq!(codes(Rule::AbsMean), ([1, -1, 1, 0, 0, 0, 1, -1], 0.5625));
    assert_eq!(codes(Rule::Twn), ([1, -1, 1, 0, 0, 0, 1, -1], 0.85));
    // f = 2.25, 3.125, 3.543, 3.534, 3.6125, 3.375: the fifth is largest, though the third is a peak too.
    assert_eq!(codes(Rule::Optimal), ([1, -1, 1, 0, 0, 0, 1, -1], 0.85));
}

#[test]
fn ties_of_the_optimum_take_fewer_codes() {
    // f(1) = 3²/1 and f(4) = 6²/4 are both 9.
    let decision = decide(&[3.0f32, 1.0, -1.0, 1.0], Rule::Optimal, ScaleRule::Rule).unwrap();
    assert_eq!((decision.threshold, decision.scale), (magnitude(3.0), 3.0));
    let mut padded = vec![3.0f32, 1.0, -1.0, 1.0];
    padded.resize(300, 0.0);
    let found = ternary_of(
        &padded,
        Groups::tensor(300).unwrap(),
        Rule::Optimal,
        ScaleRule::Rule,
        256,
    );
    assert_eq!(found.codes[..5], [1, 0, 0, 0, 0]);
}

#[test]
fn blocks_too_small_for_a_scale_become_zeros() {
    let tiny = f32::from_bits(1);
    let mut values = [0.0; 256];
    values[9] = tiny;
    let mean = decide(&values, Rule::AbsMean, ScaleRule::Rule).unwrap();
    assert_eq!(
        (mean.threshold, mean.scale),
        (u32::MAX, 0.0),
        "the mean rounds to 0"
    );
    let twn = decide(&[tiny; 4], Rule::Twn, ScaleRule::Rule).unwrap();
    assert_eq!(
        (twn.threshold, twn.scale),
        (u32::MAX, 0.0),
        "0.7 of the least float is itself"
    );
    for rule in [Rule::AbsMax, Rule::Optimal] {
        let decision = decide(&values, rule, ScaleRule::Rule).unwrap();
        assert_eq!((decision.threshold, decision.scale), (1, tiny), "{rule:?}");
    }
    let found = ternary_of(
        &values,
        Groups::tensor(256).unwrap(),
        Rule::AbsMean,
        ScaleRule::Rule,
        0,
    );
    assert_eq!((found.report.flushed, found.report.zero), (1, 0));
    let zeros = ternary_of(
        &[0.0, -0.0],
        Groups::tensor(2).unwrap(),
        Rule::AbsMax,
        ScaleRule::Rule,
        0,
    );
    assert_eq!(
        (zeros.report.flushed, zeros.report.zero, zeros.scales[0]),
        (0, 1, 0.0)
    );
}

#[test]
fn largest_floats_do_not_overflow() {
    for rule in RULES {
        for scale_rule in SCALES {
            for len in [1, 256, 300] {
                let values = vec![f32::MAX; len];
                let found =
                    ternary_of(&values, Groups::tensor(len).unwrap(), rule, scale_rule, 256);
                assert_eq!(found.scales[0], f32::MAX);
                assert!(found.codes.iter().all(|&code| code == 1));
            }
        }
    }
}

#[test]
fn refusals_name_what_is_wrong() {
    assert_eq!(
        decide::<f32>(&[], Rule::AbsMax, ScaleRule::Rule),
        Err(QuantError::Empty)
    );
    let long = QuantError::Length {
        expected: 256,
        found: 257,
    };
    assert_eq!(
        decide(&[0f32; 257], Rule::AbsMax, ScaleRule::Rule),
        Err(long)
    );
    let bad = [1.0, f32::NAN, f32::INFINITY];
    let refused = Err(QuantError::NotFinite { index: 1 });
    for rule in RULES {
        assert_eq!(decide(&bad, rule, ScaleRule::Rule), refused);
    }
    let mut values = vec![1f32; 12];
    values[7] = f32::NEG_INFINITY;
    values[11] = f32::NAN;
    let mut out = Ternary::new(Groups::rows(3, 4).unwrap());
    let mut problem = out.problem(&values);
    let result = quantize(
        &mut problem,
        Method::ternary(Rule::AbsMean, ScaleRule::Rule),
        &mut [],
    );
    assert_eq!(
        result,
        Err(QuantError::NotFinite { index: 7 }),
        "an index in the tensor, not in the row"
    );
}

#[test]
fn scratch_is_asked_for_before_it_is_used() {
    assert_eq!(ternary::scratch_len(Rule::Optimal, 256), 0);
    assert_eq!(ternary::scratch_len(Rule::AbsMean, 257), 0);
    assert_eq!(ternary::scratch_len(Rule::Optimal, 257), MIN_BINS);
    let values = [1f32; 257];
    let mut out = Ternary::new(Groups::tensor(257).unwrap());
    let mut bins = [MagnitudeBin::EMPTY; MIN_BINS - 1];
    let result = quantize(
        &mut out.problem(&values),
        Method::ternary(Rule::Optimal, ScaleRule::Rule),
        &mut bins,
    );
    assert_eq!(result, Err(QuantError::Scratch { needed: MIN_BINS }));
    // The loop alone refuses too, rather than search for ever.
    let method = Method::Ternary {
        rule: Rule::Optimal,
        scale_rule: ScaleRule::Rule,
    };
    let result = quantize_in_order(&mut out.problem(&values), method, &mut []);
    assert_eq!(result, Err(QuantError::Scratch { needed: MIN_BINS }));
}
