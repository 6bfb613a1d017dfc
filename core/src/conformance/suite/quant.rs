//! Quantizers on any engine: drivers, rules, granularities.

use half::f16;

use super::{Digest, input};
use crate::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use crate::number::Element;
use crate::quant::{Codes, Groups, Method, Rule, ScaleRule, int8, optimal, quantize};

/// Methods, by the name of their digest.
const METHODS: [(&str, Method); 9] = [
    (
        "quant/ternary/absmax",
        ternary(Rule::AbsMax, ScaleRule::Rule),
    ),
    (
        "quant/ternary/absmean",
        ternary(Rule::AbsMean, ScaleRule::Rule),
    ),
    (
        "quant/ternary/absmean/ls",
        ternary(Rule::AbsMean, ScaleRule::LeastSquares),
    ),
    (
        "quant/ternary/absmax/ls",
        ternary(Rule::AbsMax, ScaleRule::LeastSquares),
    ),
    ("quant/ternary/twn", ternary(Rule::Twn, ScaleRule::Rule)),
    (
        "quant/ternary/optimal",
        ternary(Rule::Optimal, ScaleRule::Rule),
    ),
    ("quant/int8/symmetric", Method::Symmetric { limit: 127 }),
    ("quant/int8/affine", Method::Affine),
    ("quant/int4/symmetric", Method::Symmetric { limit: 7 }),
];

const fn ternary(rule: Rule, scale_rule: ScaleRule) -> Method {
    Method::Ternary { rule, scale_rule }
}

pub(super) fn run<E: QuantizeEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    for (name, method) in METHODS {
        report(name, digest(engine, method));
    }
    report("quant/ternary/optimal/search", search(engine));
}

#[inline(never)]
fn digest<E: QuantizeEngine>(engine: &mut E, method: Method) -> u64 {
    let mut digest = Digest::new();
    input::for_each(4, &mut |values| {
        // The whole tensor (an error if the rule needs scratch, see `search`) and odd rows.
        for groups in [values.len(), 51, 85] {
            quantize_into(engine, method, values, groups, &mut [], &mut digest);
        }
    });
    let mut spoiled = [1.0; 40];
    spoiled[33] = f32::NAN;
    quantize_into(engine, method, &spoiled, 20, &mut [], &mut digest);
    digest.value()
}

/// Quantizes in groups of `len` values and digests codes, scales, zero points, counts and errors.
#[inline(never)]
fn quantize_into<E: QuantizeEngine, T: Element>(
    engine: &mut E,
    method: Method,
    values: &[T],
    len: usize,
    bins: &mut [MagnitudeBin],
    digest: &mut Digest,
) {
    const GROUPS: usize = 5;
    if len == 0 {
        return;
    }
    let groups = Groups {
        count: values.len() / len,
        len,
    };
    let (mut codes, mut scales, mut zero_points) = ([0; input::MAX], [0.0; GROUPS], [0; GROUPS]);
    let (Some(codes), Some(scales), Some(zero_points)) = (
        codes.get_mut(..values.len()),
        scales.get_mut(..groups.count),
        zero_points.get_mut(..groups.count),
    ) else {
        return;
    };
    let out = Output {
        codes,
        scales,
        zero_points,
    };
    let done = engine.tensor(values, groups, out).and_then(|mut tensor| {
        let report = quantize(&mut tensor, method, bins)?;
        tensor.finish()?;
        Ok(report)
    });
    let Some(done) = digest.outcome(done) else {
        return;
    };
    for count in [
        done.groups,
        done.zero,
        done.flushed,
        done.coded,
        done.clipped,
    ] {
        digest.u64(count);
    }
    digest.i8s(codes);
    digest.f32s(scales);
    digest.i8s(zero_points);
}

/// The optimal rule over a group that is too long to sort; f16 leaves space for the bins.
#[inline(never)]
fn search<E: QuantizeEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut bins = [MagnitudeBin::EMPTY; optimal::MIN_BINS];
    let mut values = [f16::ZERO; input::MAX];
    for family in input::FAMILIES {
        fill(family, &mut values);
        let method = ternary(Rule::Optimal, ScaleRule::Rule);
        quantize_into(engine, method, &values, input::MAX, &mut bins, &mut digest);
    }
    digest.value()
}

#[inline(never)]
fn fill(family: input::Family, halves: &mut [f16; input::MAX]) {
    let mut values = [0.0; input::MAX];
    family.fill(20, &mut values);
    for (half, x) in halves.iter_mut().zip(values) {
        *half = f16::from_f32(x);
        if half.is_infinite() {
            *half = f16::MAX;
        }
    }
}

/// Codes of a whole range, back to floats.
#[inline(never)]
pub(super) fn dequantize<E: QuantizeEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut codes = [0i8; 255];
    for (code, value) in codes.iter_mut().zip(-127..=127) {
        *code = value;
    }
    let mut out = [0.0; 255];
    for scale in [0.1, 1.0e-45, 3.0e36, 0.0] {
        let codes = Codes {
            groups: Groups { count: 5, len: 51 },
            codes: &codes,
            scales: &[scale; 5],
            zero_points: &[-128, -1, 0, 1, 127],
        };
        digest.outcome(engine.dequantize(codes, int8::RANGE, &mut out));
        digest.f32s(&out);
    }
    digest.value()
}
