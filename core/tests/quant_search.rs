//! How much work the search for the optimum does, and what it asks of engines.

use crate::support::{cases, normal, vectors};

use proptest::prelude::*;
use tercet_core::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use tercet_core::number::bits::{INFINITE, magnitude};
use tercet_core::number::{ExactSum, Stats};
use tercet_core::quant::{Applied, Groups, Method, Plan, QuantError, Rule, ScaleRule, quantize};
use tercet_core::scalar::{self, Tensor};

/// Counts the passes over the magnitudes of another problem.
struct Counting<'a> {
    tensor: Tensor<'a, f32>,
    passes: usize,
}

impl QuantizeProblem for Counting<'_> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.tensor.groups()
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        self.tensor.stats(group)
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        self.tensor.extremes(group)
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), QuantError> {
        self.tensor.read_magnitudes(group, out)
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        self.passes += 1;
        self.tensor.magnitudes(group, span, bins)
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, QuantError> {
        self.tensor.apply(group, plan)
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        self.tensor.set_scale(group, scale, zero_point)
    }
}

fn passes(values: &[f32], bins: usize) -> usize {
    let groups = Groups::tensor(values.len()).unwrap();
    let (mut codes, mut scales) = (vec![0; values.len()], [0.0]);
    let tensor = Tensor::new(values, groups, &mut codes, &mut scales, &mut []).unwrap();
    let mut counting = Counting { tensor, passes: 0 };
    let mut bins = vec![MagnitudeBin::EMPTY; bins];
    quantize(
        &mut counting,
        Method::ternary(Rule::Optimal, ScaleRule::Rule),
        &mut bins,
    )
    .unwrap();
    counting.passes
}

#[test]
fn usual_data_needs_few_passes() {
    let values = normal(1_000_000);
    for (bins, most) in [(65_536, 2), (4096, 2), (1024, 3), (256, 3), (128, 4)] {
        let found = passes(&values, bins);
        println!("{bins} bins: {found} passes");
        assert!(found <= most, "{bins} bins: {found} passes");
    }
}

/// The k-th magnitude is √k − √(k−1), so S²/k is 1 at every k but for roundings: no bin can be ruled out by much.
#[test]
fn data_made_against_it_still_ends() {
    let values: Vec<f32> = (0..20_000u32)
        .map(|k| (f64::from(k + 1).sqrt() - f64::from(k).sqrt()) as f32)
        .collect();
    let found = passes(&values, 256);
    println!("{found} passes");
    assert!((100..300).contains(&found), "{found} passes");
}

#[test]
fn spans_that_lie_are_refused() {
    let refused = |first, end, shift, bins| {
        let span = MagnitudeSpan { first, end, shift };
        let mut bins = vec![MagnitudeBin::EMPTY; bins];
        scalar::magnitudes(&[1.0f32], span, &mut bins)
    };
    assert_eq!(refused(0, INFINITE, 23, 255), Ok(()));
    assert_eq!(refused(0, INFINITE, 24, 128), Err(QuantError::Range));
    assert_eq!(refused(0, INFINITE, 40, 1), Err(QuantError::Range));
    assert_eq!(refused(0, INFINITE + 1, 23, 256), Err(QuantError::Range));
    assert_eq!(refused(4, 32, 3, 4), Err(QuantError::Range));
    let short = QuantError::Length {
        expected: 3,
        found: 2,
    };
    assert_eq!(refused(8, 25, 3, 2), Err(short));
    assert_eq!(refused(8, 25, 3, 3), Ok(()));
    assert_eq!(refused(8, 0, 3, 0), Ok(()));
}

proptest! {
    #![proptest_config(cases(200))]

    /// Bins over everything add up to the exact sum, and each holds what lies in it; any split of the values gives the
    /// same bins.
    #[test]
    fn bins_partition_the_exact_sum(values in vectors(1..200usize), shift in 18u32..=23, cut in 0usize..200) {
        let span = MagnitudeSpan { first: 0, end: INFINITE, shift };
        let mut bins = vec![MagnitudeBin::EMPTY; span.bins()];
        scalar::magnitudes(&values, span, &mut bins).unwrap();
        let (mut sum, mut total) = (ExactSum::ZERO, ExactSum::ZERO);
        total.add_slice(&values);
        for (first, bin) in (0u32..).step_by(1 << shift).zip(&bins) {
            sum.add_mantissas(bin.mantissas, first);
            let inside = values.iter().filter(|&&x| magnitude(x) >> shift == first >> shift);
            prop_assert_eq!(bin.count, inside.count() as u64);
        }
        prop_assert_eq!(sum, total);
        let (left, right) = values.split_at(cut.min(values.len()));
        let mut merged = vec![MagnitudeBin::EMPTY; span.bins()];
        scalar::magnitudes(left, span, &mut merged).unwrap();
        let mut rest = vec![MagnitudeBin::EMPTY; span.bins()];
        scalar::magnitudes(right, span, &mut rest).unwrap();
        merged.iter_mut().zip(&rest).for_each(|(bin, other)| bin.merge(other));
        prop_assert_eq!(merged, bins);
    }
}
