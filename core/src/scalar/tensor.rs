//! A tensor to quantize, in the caller's slices.

use crate::engine::{MagnitudeBin, MagnitudeSpan, QuantizeProblem};
use crate::number::{Element, Stats};
use crate::quant::{Applied, Groups, Plan, QuantError};

/// The reference engine's [`QuantizeProblem`]: values as input; codes, scales and zero points as output; all
/// borrowed.
///
/// # Example
/// ```
/// use tercet_core::quant::{Groups, Method, Rule, ScaleRule, quantize};
/// use tercet_core::scalar::Tensor;
///
/// let values = [0.9f32, -0.1, 0.4, -1.1, 0.0, 0.0, 0.0, 0.0];
/// let (mut codes, mut scales) = ([0; 8], [0.0; 2]);
/// let mut rows = Tensor::new(&values, Groups::rows(2, 4)?, &mut codes, &mut scales, &mut [])?;
/// let method = Method::ternary(Rule::AbsMean, ScaleRule::LeastSquares);
/// let report = quantize(&mut rows, method, &mut [])?;
/// assert_eq!(codes, [1, 0, 1, -1, 0, 0, 0, 0]);
/// assert_eq!(scales, [0.8, 0.0]); // (0.9 + 0.4 + 1.1) / 3, and a row of zeros
/// assert_eq!((report.coded, report.zero), (3, 1));
/// # Ok::<(), tercet_core::quant::QuantError>(())
/// ```
#[derive(Debug)]
pub struct Tensor<'a, T> {
    values: &'a [T],
    groups: Groups,
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    zero_points: &'a mut [i8],
}

impl<'a, T: Element> Tensor<'a, T> {
    /// Borrows a tensor's slices: one code per value, one scale per group, and one zero point per group or none at
    /// all (symmetric and ternary methods have none).
    ///
    /// # Errors
    /// [`QuantError::Empty`] without values; [`QuantError::Length`] or [`QuantError::GroupLength`] if a length does
    /// not fit the groups.
    pub fn new(
        values: &'a [T],
        groups: Groups,
        codes: &'a mut [i8],
        scales: &'a mut [f32],
        zero_points: &'a mut [i8],
    ) -> Result<Self, QuantError> {
        groups.check(values.len())?;
        groups.check(codes.len())?;
        let points = zero_points.len();
        for found in [
            scales.len(),
            if points == 0 { groups.count } else { points },
        ] {
            if found != groups.count {
                return Err(QuantError::Length {
                    expected: groups.count,
                    found,
                });
            }
        }
        Ok(Self {
            values,
            groups,
            codes,
            scales,
            zero_points,
        })
    }

    fn no_group(&self, group: usize) -> QuantError {
        QuantError::NoGroup {
            group,
            count: self.groups.count,
        }
    }

    fn values(&self, group: usize) -> Result<&'a [T], QuantError> {
        // `new` refused groups of length 0; repeated here for the compiler.
        let mut groups = self.values.chunks_exact(self.groups.len.max(1));
        groups.nth(group).ok_or(self.no_group(group))
    }
}

impl<T: Element> QuantizeProblem for Tensor<'_, T> {
    type Error = QuantError;

    fn groups(&self) -> Groups {
        self.groups
    }

    fn stats(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(Stats::of(self.values(group)?))
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, QuantError> {
        Ok(Stats::extremes_of(self.values(group)?))
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), QuantError> {
        super::read_magnitudes(self.values(group)?, out)
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), QuantError> {
        super::magnitudes(self.values(group)?, span, bins)
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, QuantError> {
        let values = self.values(group)?;
        let missing = self.no_group(group);
        let mut groups = self.codes.chunks_exact_mut(self.groups.len.max(1));
        let codes = groups.nth(group).ok_or(missing)?;
        match plan {
            Plan::Ternary { threshold, sum } => super::ternary(values, *threshold, *sum, codes),
            Plan::Affine(grid) => grid.apply(values, codes),
        }
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), QuantError> {
        let missing = self.no_group(group);
        *self.scales.get_mut(group).ok_or(missing)? = scale;
        if let Some(slot) = self.zero_points.get_mut(group) {
            *slot = zero_point;
        } else if zero_point != 0 {
            // Without a place for zero points, the codes could not be decoded.
            return Err(QuantError::Length {
                expected: self.groups.count,
                found: 0,
            });
        }
        Ok(())
    }
}
