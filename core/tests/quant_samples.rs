//! Relative squared errors of the ternary rules on a million normal and Laplace samples.

use crate::support::{Ternary, normal, ternary_of, uniform};
use tercet_core::number::Random;
use tercet_core::quant::{Groups, Rule, ScaleRule};

const LEN: usize = 1_000_000;

fn laplace() -> Vec<f32> {
    let mut random = Random::new(1774);
    let draws = std::iter::repeat_with(|| {
        let magnitude = -uniform(&mut random).ln();
        if random.below(2) == 0 {
            magnitude
        } else {
            -magnitude
        }
    });
    draws.take(LEN).map(|x| x as f32).collect()
}

/// Σ(x − s·code)² / Σx².
fn relative_error(values: &[f32], found: &Ternary) -> f64 {
    let scale = f64::from(found.scales[0]);
    let pairs = values.iter().zip(&found.codes);
    let lost: f64 = pairs
        .map(|(&x, &code)| (f64::from(x) - scale * f64::from(code)).powi(2))
        .sum();
    lost / values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>()
}

fn quantized(values: &[f32], rule: Rule, scale_rule: ScaleRule) -> Ternary {
    ternary_of(
        values,
        Groups::tensor(values.len()).unwrap(),
        rule,
        scale_rule,
        1024,
    )
}

/// The textbook way: sort, add up in f64, keep the best S²/k. Gives k and S/k.
fn sort_and_scan(values: &[f32]) -> (usize, f64) {
    let mut magnitudes: Vec<f64> = values.iter().map(|&x| f64::from(x.abs())).collect();
    magnitudes.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best, mut answer) = (0.0, 0.0, (0, 0.0));
    for (index, magnitude) in magnitudes.iter().enumerate() {
        sum += magnitude;
        let len = (index + 1) as f64;
        if sum * sum / len > best {
            best = sum * sum / len;
            answer = (index + 1, sum / len);
        }
    }
    answer
}

#[test]
fn errors_on_normal_and_laplace_are_as_published() {
    use ScaleRule::{LeastSquares, Rule as Own};
    // Rule, scale, the most it may lose on normal and on Laplace samples.
    let limits = [
        (Rule::Optimal, Own, 0.1915, 0.267),
        (Rule::AbsMean, Own, 0.264, 0.396),
        (Rule::AbsMean, LeastSquares, 0.214, 0.319),
        (Rule::Twn, Own, 0.192, 0.283),
    ];
    let (normal, laplace) = (normal(LEN), laplace());
    for (rule, scale_rule, on_normal, on_laplace) in limits {
        let normal = relative_error(&normal, &quantized(&normal, rule, scale_rule));
        let laplace = relative_error(&laplace, &quantized(&laplace, rule, scale_rule));
        println!("{rule:?} {scale_rule:?}: normal {normal:.4}, laplace {laplace:.4}");
        assert!(
            normal <= on_normal && normal > on_normal - 0.01,
            "{rule:?} {scale_rule:?}: {normal}"
        );
        assert!(
            laplace <= on_laplace && laplace > on_laplace - 0.01,
            "{rule:?} {scale_rule:?}: {laplace}"
        );
    }
}

#[test]
fn optimal_equals_a_plain_sort_and_scan() {
    for values in [normal(LEN), laplace()] {
        let found = quantized(&values, Rule::Optimal, ScaleRule::Rule);
        let (coded, scale) = sort_and_scan(&values);
        assert_eq!(found.report.coded, coded as u64);
        let off = (f64::from(found.scales[0]) - scale).abs();
        assert!(
            off <= scale * 2f64.powi(-24),
            "the scale is the mean, rounded once"
        );
    }
}

#[test]
fn scratch_size_does_not_show() {
    let values = laplace();
    let groups = Groups::rows(1000, 1000).unwrap();
    let expected = ternary_of(&values, groups, Rule::Optimal, ScaleRule::Rule, 256);
    for bins in [300, 4096] {
        assert!(ternary_of(&values, groups, Rule::Optimal, ScaleRule::Rule, bins) == expected);
    }
}
