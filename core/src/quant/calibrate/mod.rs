//! Chooses the int8 grid of a tensor from a histogram of its values.
//!
//! Every method reads only the [`Histogram`], so the same values give the same grid in any order and any chunking.
//! The resolution is the histogram's: see each [`RangeRule`].
//!
//! ```
//! use tercet_core::quant::calibrate::{RangeRule, Scheme, calibrate};
//! use tercet_core::quant::{Histogram, SMALL_BITS};
//!
//! let mut buckets = [0; Histogram::<SMALL_BITS>::BUCKETS];
//! let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets)?;
//! histogram.push(&[-1.0_f32, 0.25, 2.54])?;
//! let calibration = calibrate(&histogram, RangeRule::AbsMax, Scheme::Symmetric)?;
//! assert_eq!(calibration.grid.scale, 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod divergence;
mod search;
mod squared_error;

use super::{Grid, Histogram, QuantError};
use crate::number::bits;

/// Symmetric grids have codes from −LIMIT to LIMIT.
const LIMIT: i8 = 127;

/// RangeRule that finds the clipping range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RangeRule {
    /// [−m, m] with m the exact largest magnitude. Nothing is clipped.
    AbsMax,
    /// The exact smallest and largest value. Nothing is clipped.
    MinMax,
    /// Keeps all but the outermost values: at most `10⁶ − ppm` in a million lie outside.
    ///
    /// Symmetric schemes count magnitudes; affine schemes leave half of them out at each end. An end is its bucket's
    /// outer edge, limited to the exact extreme: it is at most one bucket width from the exact percentile.
    Percentile {
        /// Values kept per million, 1 to 1,000,000; 999,900 is the 99.99th percentile.
        ppm: u32,
    },
    /// The least expected squared error among about 160 ranges (affine: 1,120). The ranges go from the full one down
    /// to 2⁻¹⁶ of it, in steps of an eighth of an octave and then of a 128th around the best.
    ///
    /// The method treats the values of a bucket as spread evenly over it and integrates the error over the bucket.
    /// Affine ranges shrink both ends together first and then each in turn, which finds a local minimum.
    Mse,
    /// The least Kullback–Leibler divergence between the values and their grid, among the ranges of [`RangeRule::Mse`].
    ///
    /// After Migacz, *8-bit Inference with TensorRT*, GTC 2017: clipped values count at the end codes of the
    /// reference distribution only, and each code's values are spread evenly over the parts that were not empty. His
    /// reference has 2,048 equal bins. Here it is the histogram's buckets, each spread evenly, so the two choose
    /// differently if bins are noisy. Exact zeros are left out, because a grid keeps them. For values spread evenly
    /// over orders of magnitude, this method clips more than the squared error asks for.
    Entropy,
}

/// The kind of int8 grid that covers the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Scheme {
    /// [`Grid::symmetric`] with codes −127..=127 and the larger end of the range.
    Symmetric,
    /// [`Grid::affine`]: codes −128..=127, the range widened to hold 0.
    Affine,
}

/// A clipping range and its grid.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Calibration {
    /// Lower end, as the method found it; −`high` for the symmetric scheme.
    pub low: f32,
    /// Upper end.
    pub high: f32,
    /// The grid over this range.
    pub grid: Grid,
}

/// Finds the int8 grid for the values counted in `histogram`.
///
/// O(buckets) for [`RangeRule::AbsMax`], [`RangeRule::MinMax`] and [`RangeRule::Percentile`]. For [`RangeRule::Mse`]
/// and [`RangeRule::Entropy`] the number of buckets in use times the number of ranges tried. No scratch.
///
/// # Errors
/// [`QuantError::Empty`] for a histogram without values; [`QuantError::Percentile`] for a `ppm` outside
/// 1..=1,000,000.
pub fn calibrate<const B: u32>(
    histogram: &Histogram<'_, B>,
    method: RangeRule,
    scheme: Scheme,
) -> Result<Calibration, QuantError> {
    let (min, max) = histogram.range().ok_or(QuantError::Empty)?;
    let abs_max = histogram.abs_max();
    let range = match method {
        RangeRule::AbsMax => Range::symmetric(abs_max),
        RangeRule::MinMax => Range {
            low: min,
            high: max,
        },
        RangeRule::Percentile { ppm } => percentile(histogram, ppm, scheme)?,
        RangeRule::Mse => search::least(full(min, max, scheme), scheme, |grid| {
            squared_error::expected(histogram, grid)
        }),
        RangeRule::Entropy => search::least(full(min, max, scheme), scheme, |grid| {
            divergence::expected(histogram, grid)
        }),
    };
    range.calibration(scheme)
}

fn percentile<const B: u32>(
    histogram: &Histogram<'_, B>,
    ppm: u32,
    scheme: Scheme,
) -> Result<Range, QuantError> {
    if !(1..=1_000_000).contains(&ppm) {
        return Err(QuantError::Percentile { ppm });
    }
    let count = histogram.count();
    let parts = match scheme {
        Scheme::Symmetric => 1_000_000,
        Scheme::Affine => 2_000_000,
    };
    // Less than `count`, since ppm ≥ 1.
    let outside = (u128::from(count) * u128::from(1_000_000 - ppm) / parts) as u64;
    let top = count - 1 - outside;
    match scheme {
        Scheme::Symmetric => histogram.upper_magnitude(top).map(Range::symmetric),
        Scheme::Affine => {
            histogram
                .at_rank(outside)
                .zip(histogram.at_rank(top))
                .map(|(bottom, top)| Range {
                    low: bottom.low,
                    high: top.high,
                })
        }
    }
    .ok_or(QuantError::Empty)
}

/// Returns the widest range, from which a search starts.
fn full(min: f32, max: f32, scheme: Scheme) -> Range {
    let range = Range {
        low: min,
        high: max,
    };
    match scheme {
        Scheme::Symmetric => Range::symmetric(range.abs_max()),
        Scheme::Affine => range.with_zero(),
    }
}

/// The ends of a clipping range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f32,
    high: f32,
}

impl Range {
    const fn symmetric(abs_max: f32) -> Self {
        Self {
            low: -abs_max,
            high: abs_max,
        }
    }

    fn abs_max(self) -> f32 {
        f32::from_bits(bits::magnitude(self.low).max(bits::magnitude(self.high)))
    }

    /// Returns the range with each end moved to 0 if it lies on the other's side.
    fn with_zero(self) -> Self {
        Self {
            low: if self.low < 0.0 { self.low } else { 0.0 },
            high: if self.high > 0.0 { self.high } else { 0.0 },
        }
    }

    fn grid(self, scheme: Scheme) -> Result<Grid, QuantError> {
        match scheme {
            Scheme::Symmetric => Grid::symmetric(self.abs_max(), LIMIT),
            Scheme::Affine => Grid::affine(self.low, self.high),
        }
    }

    fn calibration(self, scheme: Scheme) -> Result<Calibration, QuantError> {
        let range = match scheme {
            Scheme::Symmetric => Self::symmetric(self.abs_max()),
            Scheme::Affine => self,
        };
        Ok(Calibration {
            low: range.low,
            high: range.high,
            grid: self.grid(scheme)?,
        })
    }
}

/// Returns the grid point nearest to `u`, both in steps from the code of 0.0. Halves go up; no integral depends on
/// that.
fn nearest(u: f64, grid: &Grid) -> f64 {
    let low = f64::from(grid.low) - f64::from(grid.zero_point);
    let high = f64::from(grid.high) - f64::from(grid.zero_point);
    let shifted = u.max(low).min(high) + 0.5;
    // |shifted| ≤ 256, so the conversion only truncates; below zero the result is one too high.
    let truncated = f64::from(shifted as i32);
    if truncated > shifted {
        truncated - 1.0
    } else {
        truncated
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::number::Random;
    use crate::quant::Bucket;

    /// Number of slices per bucket.
    const SLICES: u32 = 100_000;

    fn grids() -> [Grid; 4] {
        [
            Grid::symmetric(3.0, 127).unwrap(),
            Grid::symmetric(0.7, 7).unwrap(),
            Grid::affine(-1.0, 2.5).unwrap(),
            Grid::affine(0.0, 4.0).unwrap(),
        ]
    }

    fn values() -> Vec<f32> {
        let mut random = Random::new(1);
        let mut draw = || random.below(2000) as f32 / 1000.0 - 1.0;
        (0..500).map(|_| draw() * draw() * draw() * 4.0).collect()
    }

    /// Returns the middle, width and mass (in values) of every slice, and its grid point.
    fn slices(bucket: Bucket, grid: &Grid) -> impl Iterator<Item = (f64, f64, f64, i32)> {
        let (low, high) = (f64::from(bucket.low), f64::from(bucket.high));
        let width = (high - low) / f64::from(SLICES);
        let mass = bucket.count as f64 / f64::from(SLICES);
        let grid = *grid;
        (0..SLICES).map(move |i| {
            let x = low + width * (f64::from(i) + 0.5);
            let code = (x / f64::from(grid.scale)).round() + f64::from(grid.zero_point);
            let code = code.clamp(f64::from(grid.low), f64::from(grid.high));
            (x, width, mass, code as i32 - i32::from(grid.zero_point))
        })
    }

    fn with_histogram(read: impl Fn(&Histogram<'_, 9>)) {
        let mut buckets = [0; 512];
        let mut histogram = Histogram::<9>::new(&mut buckets).unwrap();
        histogram.push(&values()).unwrap();
        read(&histogram);
    }

    #[test]
    fn squared_error_equals_a_numeric_integral() {
        with_histogram(|histogram| {
            for grid in grids() {
                let error = |(x, _, mass, point): (f64, f64, f64, i32)| {
                    mass * (x - f64::from(point) * f64::from(grid.scale)).powi(2)
                };
                let buckets = histogram.iter();
                let sum: f64 = buckets.flat_map(|b| slices(b, &grid).map(error)).sum();
                let found = squared_error::expected(histogram, &grid);
                assert!((found - sum).abs() < 1e-4 * sum, "{found} {sum} {grid:?}");
            }
        });
    }

    #[test]
    fn divergence_equals_a_numeric_sum() {
        with_histogram(|histogram| {
            for grid in grids() {
                // By code: mass inside, mass outside, width, and the pieces' (mass, width) by slice.
                let mut cells = std::collections::BTreeMap::new();
                let kept = |bucket: &Bucket| bucket.low > 0.0 || bucket.high < 0.0;
                for bucket in histogram.iter().filter(kept) {
                    for (x, width, mass, point) in slices(bucket, &grid) {
                        let cell = cells.entry(point).or_insert((0.0, 0.0, 0.0, Vec::new()));
                        if (x / f64::from(grid.scale) - f64::from(point)).abs() > 0.5 {
                            cell.1 += mass;
                        } else {
                            cell.0 += mass;
                            cell.2 += width;
                            cell.3.push((mass, width));
                        }
                    }
                }
                let inside: f64 = cells.values().map(|cell| cell.0).sum();
                let all = inside + cells.values().map(|cell| cell.1).sum::<f64>();
                let mut divergence = 0.0;
                for (mass, outside, width, pieces) in cells.values() {
                    for (piece_mass, piece_width) in pieces {
                        let p = piece_mass / all * (mass + outside) / mass;
                        let q = mass / inside * piece_width / width;
                        divergence += p * (p / q).log2();
                    }
                }
                let found = divergence::expected(histogram, &grid);
                assert!(divergence > 0.0);
                let near = (found - divergence).abs() < 5e-4 * divergence;
                assert!(near, "{found} {divergence} {grid:?}");
            }
        });
    }

    #[test]
    fn divergence_is_infinite_where_an_end_code_has_no_values_of_its_own() {
        let mut buckets = [0; 512];
        let mut histogram = Histogram::<9>::new(&mut buckets).unwrap();
        histogram.push(&[0.1, 0.2, 100.0]).unwrap();
        let grid = Grid::symmetric(10.0, 127).unwrap();
        assert_eq!(divergence::expected(&histogram, &grid), f64::INFINITY);
        let whole = Grid::symmetric(100.0, 127).unwrap();
        assert!(divergence::expected(&histogram, &whole) < f64::INFINITY);
    }
}
