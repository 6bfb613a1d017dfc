//! Quantizing tensors to codes and scales, and their exact mean.

use std::sync::Arc;

use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::number::Element;
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{
    self, Codes, Groups, HOST_BITS, Histogram, Method, QuantError, Rule, ScaleRule, int8,
};

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::{Floats, Task};
use crate::measure::work::LeastWork;
use crate::measure::{Traffic, input};

/// Values in a row of the per-row case.
pub(in crate::measure) const ROW: usize = 1024;
/// The quantizers: name, method, and true if each row has its own scale.
pub(in crate::measure) const METHODS: [(&str, Method, bool); 5] = [
    ("ternary absmean", ternary(Rule::AbsMean), false),
    ("ternary optimal", ternary(Rule::Optimal), false),
    ("int8 tensor", INT8, false),
    ("int8 rows", INT8, true),
    ("int8 affine", Method::Affine, false),
];

const INT8: Method = Method::Symmetric { limit: int8::LIMIT };

const fn ternary(rule: Rule) -> Method {
    Method::Ternary {
        rule,
        scale_rule: ScaleRule::Rule,
    }
}

/// Codes of a tensor.
pub(in crate::measure) struct Quantize<T = f32> {
    values: Arc<[T]>,
    groups: Groups,
    method: Method,
}

/// Returns quantizing rows, with a scale for each, from floats of half the width: this shows the cost of widening.
pub(in crate::measure) fn halves<T: Element>(
    values: usize,
    narrow: fn(f32) -> T,
) -> (LeastWork, Quantize<T>) {
    let this = Quantize {
        values: input::normals(values)
            .iter()
            .map(|&value| narrow(value))
            .collect(),
        groups: Groups {
            count: values / ROW,
            len: ROW,
        },
        method: INT8,
    };
    let bytes = values * (T::BYTES + 1) + this.groups.count * 4;
    (LeastWork::pass(values, Traffic::Narrow, bytes), this)
}

impl Quantize {
    /// A tensor takes a pass for its statistics and one for its codes; a tensor of several groups stays in the nearest
    /// cache between the two.
    pub(in crate::measure) fn new(groups: Groups, method: Method) -> (LeastWork, Self) {
        let values = groups.count * groups.len;
        let work = LeastWork::pass(values, Traffic::Narrow, values * 5 + groups.count * 4);
        let work = match groups.count {
            1 => work.after_reading(values * 4),
            _ => work,
        };
        let this = Self {
            values: input::normals(values),
            groups,
            method,
        };
        (work, this)
    }
}

impl<T: Element> Operation for Quantize<T> {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let (mut codes, mut scales) = (vec![0; self.values.len()], vec![0.0; self.groups.count]);
        let mut zero_points = vec![0; self.groups.count];
        let mut bins = vec![MagnitudeBin::EMPTY; Task::BINS];
        clock.time(&mut || {
            let out = Output {
                codes: &mut codes,
                scales: &mut scales,
                zero_points: &mut zero_points,
            };
            with_engine!(by, engine => quantize(&mut engine, &self.values, self.groups, self.method, out, &mut bins));
        });
        let bits = Bits::default().with(&codes).with(&zero_points);
        bits.with_floats(&scales).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Quantize {
            values: Floats::of(&self.values)?,
            groups: self.groups,
            method: self.method,
        })
    }
}

fn quantize<E: QuantizeEngine<Error = QuantError>, T: Element>(
    engine: &mut E,
    values: &[T],
    groups: Groups,
    method: Method,
    out: Output<'_>,
    bins: &mut [MagnitudeBin],
) {
    let mut tensor = legal(engine.tensor(values, groups, out));
    legal(quant::quantize(&mut tensor, method, bins));
}

/// The scale of codes that are converted back to values.
const SCALE: f32 = 0.01;

/// int8 codes back to values.
pub(in crate::measure) struct Dequantize {
    codes: Vec<i8>,
    scales: Vec<f32>,
    groups: Groups,
}

impl Dequantize {
    pub(in crate::measure) fn new(groups: Groups) -> (LeastWork, Self) {
        let values = groups.count * groups.len;
        // The traffic of a single scale is negligible.
        let scales = if groups.count > 1 {
            groups.count * 4
        } else {
            0
        };
        let this = Self {
            codes: input::codes(values),
            scales: vec![SCALE; groups.count],
            groups,
        };
        (
            LeastWork::pass(values, Traffic::Widen, values * 5 + scales),
            this,
        )
    }

    fn codes(&self) -> Codes<'_> {
        Codes {
            groups: self.groups,
            codes: &self.codes,
            scales: &self.scales,
            zero_points: &[],
        }
    }
}

impl Operation for Dequantize {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut out = vec![0.0; self.codes.len()];
        clock.time(&mut || {
            with_engine!(by, engine => legal(engine.dequantize(self.codes(), int8::RANGE, &mut out)));
        });
        Bits::default().with_floats(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Dequantize {
            codes: self.codes(),
        })
    }
}

/// The scale for normal values in E4M3.
const FP8_SCALE: f32 = 0.01;

/// E4M3 codes of a tensor with a known scale.
pub(in crate::measure) struct QuantizeFp8(Arc<[f32]>);

impl QuantizeFp8 {
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let work = LeastWork::pass(values, Traffic::Narrow, values * 5);
        (work, Self(input::normals(values)))
    }
}

impl Operation for QuantizeFp8 {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut codes = vec![0; self.0.len()];
        clock.time(&mut || {
            with_engine!(by, engine => {
                legal(engine.quantize_fp8(Fp8::E4M3, FP8_SCALE, &self.0, &mut codes));
            });
        });
        Bits::default().with(&codes).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::QuantizeFp8 {
            values: &self.0,
            format: Fp8::E4M3,
            scale: FP8_SCALE,
        })
    }
}

/// E4M3 codes of a tensor back to values.
pub(in crate::measure) struct DequantizeFp8(Vec<u8>);

impl DequantizeFp8 {
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let mut codes = vec![0; values];
        legal(Fp8::E4M3.quantize(FP8_SCALE, &input::normals(values), &mut codes));
        let work = LeastWork::pass(values, Traffic::Widen, values * 5);
        (work, Self(codes))
    }
}

impl Operation for DequantizeFp8 {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut out = vec![0.0; self.0.len()];
        clock.time(&mut || {
            with_engine!(by, engine => {
                legal(engine.dequantize_fp8(Fp8::E4M3, FP8_SCALE, &self.0, &mut out));
            });
        });
        Bits::default().with_floats(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::DequantizeFp8 {
            codes: &self.0,
            format: Fp8::E4M3,
            scale: FP8_SCALE,
        })
    }
}

/// The histogram of calibration, one per thread and then merged.
pub(in crate::measure) struct Calibrate(Arc<[f32]>);

impl Calibrate {
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let work = LeastWork::pass(values, Traffic::Read, values * 4);
        (work, Self(input::normals(values)))
    }
}

impl Operation for Calibrate {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
        clock.time(&mut || {
            let mut histogram = legal(Histogram::<HOST_BITS>::new(&mut buckets));
            with_engine!(by, engine => legal(engine.histogram(&self.0, &mut histogram)));
        });
        Bits::default().with(&buckets).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Histogram { values: &self.0 })
    }
}

/// The mean of |x|, exact except for one rounding.
pub(in crate::measure) struct Mean(Arc<[f32]>);

impl Mean {
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let work = LeastWork::pass(values, Traffic::Read, values * 4);
        (work, Self(input::normals(values)))
    }
}

impl Operation for Mean {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut codes = vec![0; self.0.len()];
        let groups = legal(Groups::tensor(self.0.len()));
        let mut mean = None;
        clock.time(&mut || {
            let out = Output {
                codes: &mut codes,
                scales: &mut [0.0],
                zero_points: &mut [],
            };
            let stats = with_engine!(by, engine => legal(legal(engine.tensor(&self.0, groups, out)).stats(0)));
            mean = stats.abs_mean();
        });
        Bits::default().with_floats(mean.as_slice()).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Mean { values: &self.0 })
    }
}
