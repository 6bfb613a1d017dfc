//! Tensors of f32 to codes.

use super::data::normals;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::quant::{Groups, Method, Rule, ScaleRule, int8};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

/// Values per row.
pub(super) const ROW: usize = 1000;
/// Maximum relative difference of two sums of the same values, and so of two thresholds.
const NEAR: f32 = 1e-4;
/// If a peer multiplies by a rounded reciprocal, one code in so many may differ by one.
const RARE: usize = 10_000;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let large = if quick { 16_000_000 } else { 100_000_000 };
    let ternary = [large, 1_000_000].map(|values| {
        Event::new(
            format!("ternary absmean, {}", short(values)),
            move |name, inputs| ternary(name, inputs, values),
        )
    });
    let rows = [large, 1_000_000].map(|values| {
        Event::new(
            format!("int8 rows of {}, {}", short(ROW), short(values)),
            move |name, inputs| int8_rows(name, inputs, values),
        )
    });
    ternary.into_iter().chain(rows).collect()
}

fn ternary(name: &str, mut inputs: Inputs, values: usize) -> io::Result<Case> {
    let x = normals(values);
    inputs.put("x", &x, &[values])?;
    let method = Method::Ternary {
        rule: Rule::AbsMean,
        scale_rule: ScaleRule::Rule,
    };
    Ok(Case {
        name: name.into(),
        work: values as f64,
        unit: "values",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({}),
        tercet: Box::new(Quantize::new(x, values, method)),
        rivals: vec![
            Rival::python("NumPy", "numpy_", "ternary"),
            Rival::python("NumPy, out=", "numpy_", "ternary_out"),
            Rival::python("torch", "torch_", "ternary"),
            Rival::python("torch, compiled", "torch_", "ternary_compiled"),
        ],
    })
}

fn int8_rows(name: &str, mut inputs: Inputs, values: usize) -> io::Result<Case> {
    let x = normals(values);
    inputs.put("x", &x, &[values])?;
    let method = Method::Symmetric { limit: int8::LIMIT };
    let mut tercet = Quantize::new(x, ROW, method);
    tercet.run(0);
    inputs.put("scales", &tercet.scales, &[values / ROW])?;
    Ok(Case {
        name: name.into(),
        work: values as f64,
        unit: "values",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({"row": ROW}),
        tercet: Box::new(tercet),
        rivals: vec![
            Rival::python("NumPy", "numpy_", "int8_rows"),
            Rival::python("onnxruntime, scales given", "onnxruntime_", "int8_rows"),
            Rival::python("torch, scales given", "torch_", "int8_rows"),
        ],
    })
}

/// A tensor and its codes.
pub(super) struct Quantize {
    pub(super) x: Arc<[f32]>,
    pub(super) groups: Groups,
    pub(super) method: Method,
    pub(super) codes: Vec<i8>,
    pub(super) scales: Vec<f32>,
}

impl Quantize {
    /// Makes a tensor with groups of `len`.
    pub(super) fn new(x: Arc<[f32]>, len: usize, method: Method) -> Self {
        let groups = Groups {
            count: x.len() / len,
            len,
        };
        Self {
            codes: vec![0; x.len()],
            scales: vec![0.0; groups.count],
            groups,
            method,
            x,
        }
    }
}

impl TimedWork for Quantize {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let mut engine = Threads::default();
        let out = Output {
            codes: &mut self.codes,
            scales: &mut self.scales,
            zero_points: &mut [],
        };
        let done = engine
            .tensor(&self.x, self.groups, out)
            .and_then(|tensor| tensor.quantize(self.method));
        done.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl Native for Quantize {
    fn answer(&self) -> Answer {
        let codes: Vec<u8> = self.codes.iter().map(|&code| code as u8).collect();
        let scale = self.scales[0].to_le_bytes();
        Answer::of("codes", &codes).and("scale", &scale)
    }
}

impl Subject for Quantize {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let theirs = answer.i8("codes");
        match self.method {
            Method::Ternary { .. } => same_ternary(
                &self.x,
                (&self.codes, self.scales[0]),
                (&theirs, answer.f32("scale")[0]),
            ),
            _ => same_codes(&self.codes, &theirs),
        }
    }
}

/// Allows ternary codes to differ if |x| is as near half the scale as the scales are to each other.
fn same_ternary(x: &[f32], ours: (&[i8], f32), theirs: (&[i8], f32)) -> Result<String, String> {
    let (scale, other) = (ours.1, theirs.1);
    if x.len() != theirs.0.len() || (other / scale - 1.0).abs() > NEAR {
        return Err(format!("a scale of {other} for {scale}"));
    }
    let mut differ = 0;
    for ((x, a), b) in x.iter().zip(ours.0).zip(theirs.0) {
        if a != b {
            if (2.0 * x.abs() / scale - 1.0).abs() > NEAR {
                return Err(format!("a code of {b} for {x}, which is {a}"));
            }
            differ += 1;
        }
    }
    Ok(match differ {
        0 => "same codes".into(),
        _ => format!("same codes but {differ} at the threshold"),
    })
}

fn same_codes(ours: &[i8], theirs: &[i8]) -> Result<String, String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} codes for {}", theirs.len(), ours.len()));
    }
    let mut differ = 0;
    for (a, b) in ours.iter().zip(theirs) {
        if a.abs_diff(*b) > 1 {
            return Err(format!("a code of {b} for {a}"));
        }
        differ += usize::from(a != b);
    }
    match differ {
        0 => Ok("same codes".into()),
        _ if differ <= ours.len() / RARE => Ok(format!("same codes but {differ} off by one")),
        _ => Err(format!("{differ} codes off by one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_codes_may_differ_at_the_threshold_alone() {
        let x = [1.0, -0.500_01, 0.1];
        let ours = (&[1, -1, 0][..], 1.0);
        assert_eq!(same_ternary(&x, ours, ours).unwrap(), "same codes");
        let near = (&[1, 0, 0][..], 1.000_01);
        assert_eq!(
            same_ternary(&x, ours, near).unwrap(),
            "same codes but 1 at the threshold"
        );
        for wrong in [(&[1, -1, 1][..], 1.0), (&[1, -1, 0], 1.01), (&[1, -1], 1.0)] {
            assert!(same_ternary(&x, ours, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn int8_codes_may_rarely_be_off_by_one() {
        let ours = vec![5; RARE];
        let mut theirs = ours.clone();
        assert_eq!(same_codes(&ours, &theirs).unwrap(), "same codes");
        theirs[7] = 6;
        assert_eq!(
            same_codes(&ours, &theirs).unwrap(),
            "same codes but 1 off by one"
        );
        theirs[8] = 4;
        assert!(same_codes(&ours, &theirs).is_err());
        theirs[8] = 5;
        theirs[7] = 7;
        assert!(same_codes(&ours, &theirs).is_err());
    }
}
