//! Tensors of f32 to codes and scales.

use crate::peers::naive::{self, Codes};
use crate::{Case, Traffic, Who, normals};
use tercet_core::engine::MagnitudeBin;
use tercet_core::quant::{self, Groups, Method, Rule, ScaleRule, int8};
use tercet_core::scalar;
use tercet_host::parallel;

/// Values in a row of the per-row case.
const ROW: usize = 1024;

/// A naive loop over values in groups of a length.
type Naive = fn(&[f32], usize, &mut Codes);

/// Each operation over values in groups of a length, and the same one as a naive loop.
fn operations(values: usize) -> [(&'static str, usize, Method, Naive); 4] {
    let ternary = |rule| Method::Ternary {
        rule,
        scale_rule: ScaleRule::Rule,
    };
    let symmetric = Method::Symmetric { limit: int8::LIMIT };
    [
        (
            "ternary absmean, a tensor",
            values,
            ternary(Rule::AbsMean),
            naive::abs_mean,
        ),
        (
            "ternary optimal, a tensor",
            values,
            ternary(Rule::Optimal),
            naive::optimal,
        ),
        (
            "int8 symmetric, rows of 1,024",
            ROW,
            symmetric,
            naive::symmetric,
        ),
        (
            "int8 affine, a tensor",
            values,
            Method::Affine,
            naive::affine,
        ),
    ]
}

/// The cases over `values` values (a multiple of 1,024), each built when it is asked for.
pub fn quantize(values: usize) -> impl Iterator<Item = Case> {
    let input = normals(values);
    let operations = operations(values).into_iter();
    operations.map(move |(name, len, method, naive)| {
        let groups = Groups {
            count: values / len,
            len,
        };
        let (out, mut bins) = (outputs(groups), vec![MagnitudeBin::EMPTY; 4096]);
        Case::new(name, values, values * 5 + groups.count * 4, Traffic::Narrow)
            .with(Who::Scalar, &input, out.clone(), move |x, out| {
                scalar(x, groups, method, &mut bins, out)
            })
            .with(Who::Threads, &input, out.clone(), move |x, out| {
                threads(x, groups, method, out)
            })
            .with(Who::Naive, &input, out, move |x, out| naive(x, len, out))
    })
}

fn outputs(groups: Groups) -> Codes {
    let (codes, scales) = (vec![0; groups.count * groups.len], vec![0.0; groups.count]);
    Codes {
        codes,
        scales,
        points: vec![0; groups.count],
    }
}

fn scalar(x: &[f32], groups: Groups, method: Method, bins: &mut [MagnitudeBin], out: &mut Codes) {
    let Codes {
        codes,
        scales,
        points,
    } = out;
    let tensor = scalar::Tensor::new(x, groups, codes, scales, points);
    quant::quantize(&mut tensor.expect("lengths fit"), method, bins).expect("finite values");
}

fn threads(x: &[f32], groups: Groups, method: Method, out: &mut Codes) {
    let Codes {
        codes,
        scales,
        points,
    } = out;
    let tensor = parallel::Tensor::new(x, groups, codes, scales, points);
    tensor
        .expect("lengths fit")
        .quantize(method)
        .expect("finite values");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naive_loops_do_the_same_work() {
        let input = normals(1 << 16);
        for (name, len, method, naive) in operations(input.len()) {
            let groups = Groups {
                count: input.len() / len,
                len,
            };
            let (mut ours, mut theirs) = (outputs(groups), outputs(groups));
            naive(&input, len, &mut theirs);
            scalar(
                &input,
                groups,
                method,
                &mut [MagnitudeBin::EMPTY; 4096],
                &mut ours,
            );
            // An f32 sum may move a value across a border; more than a few would be other work.
            let differ = ours
                .codes
                .iter()
                .zip(&theirs.codes)
                .filter(|(a, b)| a != b)
                .count();
            assert!(differ <= 16, "{name}: {differ} codes differ");
            for (ours, theirs) in ours.scales.iter().zip(&theirs.scales) {
                assert!((ours / theirs - 1.0).abs() < 1e-4, "{name}");
            }
        }
    }
}
