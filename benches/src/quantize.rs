//! Tensors of f32 to codes and scales.

use crate::guest;
use crate::peers::naive::{self, Codes};
use tercet_host::measure::{Guest, input};

/// Values per row of the per-row case.
const ROW: usize = 1024;

/// A naive loop over values in groups of some length.
type Naive = fn(&[f32], usize, &mut Codes);

/// Returns the operation as a naive loop, and the length of its groups.
fn naive(operation: &str, values: usize) -> Option<(Naive, usize)> {
    Some(match operation {
        "exact mean" => (naive::mean, values),
        "ternary absmean" => (naive::abs_mean, values),
        "ternary optimal" => (naive::optimal, values),
        "int8 tensor" => (naive::symmetric, values),
        "int8 rows" => (naive::symmetric, ROW),
        "int8 affine" => (naive::affine, values),
        _ => return None,
    })
}

pub(crate) fn guests(operation: &str, values: usize) -> Vec<Guest> {
    let found = naive(operation, values).map(|(run, len)| {
        let (input, mut out) = (input::normals(values), outputs(values, len));
        guest("naive", move || run(&input, len, &mut out))
    });
    found.into_iter().collect()
}

fn outputs(values: usize, len: usize) -> Codes {
    Codes {
        codes: vec![0; values],
        scales: vec![0.0; values / len],
        points: vec![0; values / len],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_core::engine::MagnitudeBin;
    use tercet_core::quant::{self, Groups, Method, Rule, ScaleRule, int8};
    use tercet_core::scalar;

    #[test]
    fn naive_loops_do_the_same_work() {
        let ternary = |rule| Method::Ternary {
            rule,
            scale_rule: ScaleRule::Rule,
        };
        let symmetric = Method::Symmetric { limit: int8::LIMIT };
        let input = input::normals(1 << 16);
        for (name, method) in [
            ("ternary absmean", ternary(Rule::AbsMean)),
            ("ternary optimal", ternary(Rule::Optimal)),
            ("int8 tensor", symmetric),
            ("int8 rows", symmetric),
            ("int8 affine", Method::Affine),
        ] {
            let (naive, len) = naive(name, input.len()).unwrap();
            let (mut ours, mut theirs) = (outputs(input.len(), len), outputs(input.len(), len));
            naive(&input, len, &mut theirs);
            let groups = Groups::rows(input.len() / len, len).unwrap();
            let Codes {
                codes,
                scales,
                points,
            } = &mut ours;
            let mut tensor = scalar::Tensor::new(&input, groups, codes, scales, points).unwrap();
            quant::quantize(&mut tensor, method, &mut [MagnitudeBin::EMPTY; 4096]).unwrap();
            // An f32 sum may move a value across a threshold; more than a few such values would be different work.
            let pairs = ours.codes.iter().zip(&theirs.codes);
            let differ = pairs.filter(|(a, b)| a != b).count();
            assert!(differ <= 16, "{name}: {differ} codes differ");
            for (ours, theirs) in ours.scales.iter().zip(&theirs.scales) {
                assert!((ours / theirs - 1.0).abs() < 1e-4, "{name}");
            }
        }
    }
}
