//! What the tests share.
#![allow(unreachable_pub)]

pub(crate) mod gguf_bytes;

use std::f64::consts::TAU;

use proptest::collection::{SizeRange, vec};
use proptest::prelude::*;
use proptest::strategy::Union;
use tercet_core::engine::MagnitudeBin;
use tercet_core::number::Random;
use tercet_core::quant::{Groups, Method, Report, Rule, ScaleRule, quantize};
use tercet_core::scalar::Tensor;

/// So many cases, and no file of failures: a failure prints its input.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Any finite float, by bits: all exponents alike, subnormals and zeros of both signs.
pub fn finite() -> impl Strategy<Value = f32> {
    any::<u32>()
        .prop_map(f32::from_bits)
        .prop_filter("finite", |x| x.is_finite())
}

/// Finite floats of one kind or of all mixed: by bits, near one another, few distinct values, subnormal, largest.
pub fn vectors(len: impl Into<SizeRange>) -> impl Strategy<Value = Vec<f32>> {
    let len = len.into();
    let kinds = [
        finite().boxed(),
        (-1f32..1.0).boxed(),
        (-4i8..=4).prop_map(f32::from).boxed(),
        (0u32..40).prop_map(f32::from_bits).boxed(),
        prop_oneof![Just(f32::MAX), -1f32..1.0].boxed(),
    ];
    let mixed = Union::new(kinds.clone()).boxed();
    let of_one_kind = kinds.into_iter().chain([mixed]);
    Union::new(of_one_kind.map(move |kind| vec(kind, len.clone())))
}

/// The outputs of one ternary quantization.
#[derive(Debug, PartialEq)]
pub struct Ternary {
    pub groups: Groups,
    pub codes: Vec<i8>,
    pub scales: Vec<f32>,
    pub report: Report,
}

impl Ternary {
    pub fn new(groups: Groups) -> Self {
        Self {
            groups,
            codes: vec![99; groups.count * groups.len],
            scales: vec![f32::NAN; groups.count],
            report: Report::default(),
        }
    }

    pub fn problem<'a>(&'a mut self, values: &'a [f32]) -> Tensor<'a, f32> {
        Tensor::new(
            values,
            self.groups,
            &mut self.codes,
            &mut self.scales,
            &mut [],
        )
        .unwrap()
    }
}

/// Quantizes with the reference engine; bins start as garbage, since their content must not matter.
pub fn ternary_of(
    values: &[f32],
    groups: Groups,
    rule: Rule,
    scale_rule: ScaleRule,
    bins: usize,
) -> Ternary {
    let mut out = Ternary::new(groups);
    let mut bins = vec![
        MagnitudeBin {
            count: 7,
            mantissas: 9
        };
        bins
    ];
    let report = quantize(
        &mut out.problem(values),
        Method::ternary(rule, scale_rule),
        &mut bins,
    )
    .unwrap();
    out.report = report;
    out
}

/// Uniform in (0, 1].
pub fn uniform(random: &mut Random) -> f64 {
    (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64
}

/// Box and Muller's normal samples.
pub fn normal(len: usize) -> Vec<f32> {
    let mut random = Random::new(1958);
    let pairs = std::iter::repeat_with(|| {
        let radius = (-2.0 * uniform(&mut random).ln()).sqrt();
        let angle = TAU * uniform(&mut random);
        [radius * angle.cos(), radius * angle.sin()]
    });
    pairs.flatten().take(len).map(|x| x as f32).collect()
}
