//! The exact mean of |x|, compared with plain f32 sums.

use super::data::normals;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tercet_core::engine::{Output, QuantizeEngine, QuantizeProblem};
use tercet_core::quant::Groups;
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

/// Lanes of the plain sum: as many as eight 512-bit registers have.
const LANES: usize = 128;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let large = if quick { 16_000_000 } else { 100_000_000 };
    let events = [large, 1_000_000].map(|values| {
        Event::new(
            format!("mean magnitude, {}", short(values)),
            move |name, inputs| case(name, inputs, values),
        )
    });
    events.into()
}

fn case(name: &str, mut inputs: Inputs, values: usize) -> io::Result<Case> {
    // Without signs, so that a sum of x is a sum of |x|.
    let x: Arc<[f32]> = normals(values).iter().map(|x| x.abs()).collect();
    inputs.put("x", &x, &[values])?;
    Ok(Case {
        name: name.into(),
        work: values as f64,
        unit: "values",
        steps: None,
        // The plain sum has one thread, and so has NumPy's.
        pools: Pools::One,
        inputs,
        options: json!({}),
        tercet: Box::new(Exact {
            x: x.clone(),
            codes: vec![0; values],
            mean: 0.0,
        }),
        rivals: vec![
            Rival::Native {
                label: "f32 sum, 128 lanes",
                work: Box::new(Plain { x, sum: 0.0 }),
            },
            Rival::python("NumPy, f32 sum", "numpy_", "sum"),
        ],
    })
}

/// Largest, smallest and exact sum, in Tercet's one pass of statistics.
struct Exact {
    x: Arc<[f32]>,
    /// Statistics write no codes, but a tensor requires space for them.
    codes: Vec<i8>,
    mean: f32,
}

impl TimedWork for Exact {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let mut engine = Threads::default();
        let groups = Groups {
            count: 1,
            len: self.x.len(),
        };
        let out = Output {
            codes: &mut self.codes,
            scales: &mut [0.0],
            zero_points: &mut [],
        };
        let stats = engine
            .tensor(&self.x, groups, out)
            .and_then(|mut tensor| tensor.stats(0));
        let stats = stats.unwrap_or_else(|error| panic!("{error}"));
        self.mean = stats.abs_mean().unwrap_or(f32::NAN);
        start.elapsed().as_secs_f64()
    }
}

impl Subject for Exact {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let (ours, theirs) = (f64::from(self.mean), answer.f64("mean")[0]);
        let off = theirs / ours - 1.0;
        match off.abs() <= 1e-4 {
            true => Ok(format!("a mean off by {off:.0e}")),
            false => Err(format!("a mean of {theirs} for {ours}")),
        }
    }
}

/// Only a sum in f32, with the widest available registers.
struct Plain {
    x: Arc<[f32]>,
    sum: f32,
}

impl TimedWork for Plain {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        self.sum = black_box(plain(&self.x));
        start.elapsed().as_secs_f64()
    }
}

impl Native for Plain {
    fn answer(&self) -> Answer {
        let mean = f64::from(self.sum) / self.x.len() as f64;
        Answer::of("mean", &mean.to_le_bytes())
    }
}

fn plain(x: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the set.
            return unsafe { wide512(x) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { wide256(x) };
        }
    }
    lanes(x)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide512(x: &[f32]) -> f32 {
    lanes(x)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide256(x: &[f32]) -> f32 {
    lanes(x)
}

#[inline(always)]
fn lanes(x: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += x;
        }
    }
    sums.iter().chain(rest).sum()
}
