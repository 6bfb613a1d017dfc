//! The passes of quantizers over a tensor, and the whole of those that have passes of their own.

use tercet_core::engine::{MagnitudeBin, Output, QuantizeEngine, QuantizeProblem};
use tercet_core::number::Element;
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{self, Grid, Groups, Method, Plan, QuantError, Rule, ScaleRule, int8};
use tercet_core::{bf16, f16};
use tercet_host::parallel::{self, Threads};

use super::{Case, normals};

/// Values of a tensor: one tile of the engine, so that a pass is one call of a kernel.
const VALUES: usize = 1 << 14;
/// Values of a row.
const ROW: usize = 256;

pub(super) fn cases() -> Vec<Case> {
    let values = normals(VALUES);
    let half: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
    let brain: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
    let tensor = Groups {
        count: 1,
        len: VALUES,
    };
    let rows = Groups {
        count: VALUES / ROW,
        len: ROW,
    };
    let ternary = Plan::Ternary {
        threshold: 0.4f32.to_bits(),
        sum: false,
    };
    let grid = Grid::affine(-3.0, 4.0).expect("a range");
    let optimal = Method::Ternary {
        rule: Rule::Optimal,
        scale_rule: ScaleRule::Rule,
    };
    let symmetric = Method::Symmetric { limit: int8::LIMIT };

    let mut restored = vec![0.0; VALUES];
    let of_codes = super::codes(VALUES, -1, 1);
    let (floats, mut float_codes) = (values.clone(), vec![0; VALUES]);
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(VALUES).collect();
    let mut values_of_bytes = vec![0.0; VALUES];
    let compared = (values.clone(), half.clone());
    vec![
        stats("f32", values.clone()),
        stats("f16", half.clone()),
        stats("bf16", brain),
        apply("ternary,f32", values.clone(), ternary),
        apply("ternary,f16", half, ternary),
        apply("affine,f32", values.clone(), Plan::Affine(grid)),
        quantize("symmetric,rows", values.clone(), rows, symmetric),
        quantize("ternary_optimal,rows", values.clone(), rows, optimal),
        quantize("ternary_optimal,tensor", values, tensor, optimal),
        Case::new("dequantize", "ternary", VALUES, move || {
            let codes = quant::Codes {
                codes: &of_codes,
                scales: &[0.5],
                zero_points: &[],
                groups: tensor,
            };
            let done = Threads::default().dequantize(codes, quant::ternary::RANGE, &mut restored);
            done.expect("codes of the format");
        }),
        Case::new("quantize_fp8", "e4m3,f32", VALUES, move || {
            let done = Threads::default().quantize_fp8(Fp8::E4M3, 0.01, &floats, &mut float_codes);
            done.expect("finite values");
        }),
        Case::new("dequantize_fp8", "e5m2", VALUES, move || {
            let done =
                Threads::default().dequantize_fp8(Fp8::E5M2, 0.01, &bytes, &mut values_of_bytes);
            done.expect("as many values");
        }),
        Case::new("compare", "f32,f16", VALUES, move || {
            parallel::compare(&compared.0, &compared.1).expect("finite values");
        }),
    ]
}

/// A tensor's codes, as engines want them.
struct Out {
    codes: Vec<i8>,
    scales: Vec<f32>,
    zero_points: Vec<i8>,
}

impl Out {
    fn new(groups: Groups) -> Self {
        Self {
            codes: vec![0; groups.count * groups.len],
            scales: vec![0.0; groups.count],
            zero_points: vec![0; groups.count],
        }
    }

    fn view(&mut self) -> Output<'_> {
        Output {
            codes: &mut self.codes,
            scales: &mut self.scales,
            zero_points: &mut self.zero_points,
        }
    }
}

/// Does something with the tensor that the engine has of values.
fn on_tensor<T: Element>(
    values: Vec<T>,
    groups: Groups,
    mut run: impl FnMut(parallel::Tensor<'_, T>) -> Result<(), QuantError>,
) -> impl FnMut() {
    let mut out = Out::new(groups);
    move || {
        let mut engine = Threads::default();
        let tensor = engine.tensor(&values, groups, out.view());
        tensor
            .and_then(&mut run)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

fn stats<T: Element + 'static>(on: &str, values: Vec<T>) -> Case {
    let groups = Groups {
        count: 1,
        len: values.len(),
    };
    let run = on_tensor(values, groups, |mut tensor| {
        std::hint::black_box(tensor.stats(0)?);
        Ok(())
    });
    Case::new("stats", on, VALUES, run)
}

fn apply<T: Element + 'static>(on: &str, values: Vec<T>, plan: Plan) -> Case {
    let groups = Groups {
        count: 1,
        len: values.len(),
    };
    let run = on_tensor(values, groups, move |mut tensor| {
        tensor.apply(0, &plan).map(|_| ())
    });
    Case::new("apply", on, VALUES, run)
}

fn quantize(on: &str, values: Vec<f32>, groups: Groups, method: Method) -> Case {
    let mut bins = vec![MagnitudeBin::EMPTY; method.scratch_len(groups.len)];
    let run = on_tensor(values, groups, move |mut tensor| {
        quant::quantize(&mut tensor, method, &mut bins).map(|_| ())
    });
    Case::new("quantize", on, VALUES, run)
}
