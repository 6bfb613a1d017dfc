//! Spherical k-means (Dhillon and Modha, 2001): points and centroids of one length, clustered by direction.
//!
//! Every point is scaled to the same length R, as large as int8 allows: the largest coordinate becomes 127. Between
//! vectors of one length, the squared distance 2·R²·(1 − cos) orders like the cosine, so the assignment uses the
//! ordinary score. A centroid is the sum of its members scaled to R, rounded half away from zero and clipped to ±127.

use super::{ClusterError, Points};
use crate::number::lanes::product;
use crate::number::{Element, Lanes, bits, root, round};

/// The largest code.
const LIMIT: u64 = 127;

/// The length R, as an exact ratio: R² = `numerator / denominator`.
///
/// R is at least 127 and at most 127·√d, so the numerator stays below 2⁴⁴.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sphere {
    numerator: u64,
    denominator: u64,
}

/// Largest sum of weights of a spherical run: sums then fit 40 bits and their scaled squares fit 128.
pub const MAX_SPHERE_WEIGHT: u64 = 1 << 33;

impl Sphere {
    /// Returns R² as a float, for display.
    pub fn squared_radius(&self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Returns R² as numerator (below 2⁴⁴) and denominator (at most 2¹⁴), for engines that scale by themselves.
    pub const fn ratio(&self) -> (u64, u64) {
        (self.numerator, self.denominator)
    }

    /// Returns `coordinate · R / √length_squared`, rounded half away from zero and clipped to ±127.
    ///
    /// With q = coordinate² · R² / length²: ⌊√q + ½⌋ = ⌊(⌊√(4q)⌋ + 1) / 2⌋, and ⌊√(4q)⌋ is the root of ⌊4q⌋. So
    /// integers give the exact rounding.
    pub(crate) fn scaled(&self, coordinate: i64, length_squared: u128) -> i8 {
        // Below 2⁸⁰ · 2² · 2⁴⁴ by the limits on weight and R; within these limits nothing saturates.
        let magnitude = u128::from(coordinate.unsigned_abs());
        let square = (magnitude * magnitude).saturating_mul(4 * u128::from(self.numerator));
        let divisor = length_squared.saturating_mul(u128::from(self.denominator));
        let Some(quotient) = square.checked_div(divisor) else {
            return 0;
        };
        // The root of the clipped quotient is the clipped root, and the root of a short number is fast.
        let clipped = quotient.min(u128::from(4 * LIMIT * LIMIT)) as u32;
        let code = clipped.isqrt().div_ceil(2) as i8;
        if coordinate < 0 { -code } else { code }
    }

    /// Computes the centroid of a cluster from the sum of its members. A sum of zeros leaves the centroid unchanged.
    pub(crate) fn centroid(&self, sums: impl Iterator<Item = i64> + Clone, centroid: &mut [i8]) {
        let length = sums.clone().fold(0u128, |length, sum| {
            let magnitude = u128::from(sum.unsigned_abs());
            length + magnitude * magnitude
        });
        if length == 0 {
            return;
        }
        for (code, sum) in centroid.iter_mut().zip(sums) {
            *code = self.scaled(sum, length);
        }
    }
}

/// Scales int8 points in place to one length and returns that length. Points of zeros stay zeros.
///
/// With m²/n the largest ratio of a squared coordinate to the squared length of its point, R² = 127² · n / m². Exact.
///
/// O(n·d), two passes.
///
/// # Errors
/// Those of [`Points::new`].
pub fn normalize(values: &mut [i8], dims: usize) -> Result<Sphere, ClusterError> {
    let points = Points::new(values, dims)?;
    // The initial 0 : 1 stays only if every point is zero. It then becomes 1 : 1, the ratio of an axis.
    let mut steepest = (0u64, 1u64);
    for (row, _) in points.rows() {
        let square = |&x: &i8| u64::from(x.unsigned_abs()).pow(2);
        let largest = row.iter().map(square).max().unwrap_or(0);
        let length: u64 = row.iter().map(square).sum();
        // Both products are below 2¹⁴ · 2³⁰.
        if largest * steepest.1 > steepest.0 * length && length > 0 {
            steepest = (largest, length);
        }
    }
    let sphere = Sphere {
        numerator: LIMIT * LIMIT * steepest.1,
        denominator: steepest.0.max(1),
    };
    for row in values.chunks_exact_mut(dims.max(1)) {
        let length = row
            .iter()
            .map(|&x| u128::from(x.unsigned_abs()).pow(2))
            .sum();
        for x in row {
            *x = sphere.scaled(i64::from(*x), length);
        }
    }
    Ok(sphere)
}

/// Scales float points to one length as int8 codes and returns that length. Points of zeros become zeros.
///
/// Like [`normalize`], but in `f64` and in one fixed sequence: the squared length n of a point by [`Lanes`]; ρ, the
/// largest fl(m² / n), with m the largest |coordinate| of the point; codes = fl(x · fl(127 / √fl(ρ·n))) rounded half
/// away from zero and clipped; R² = 127²/ρ, kept to 14 fraction bits.
///
/// O(n·d), two passes.
///
/// # Errors
/// Those of [`Points::new`]; [`ClusterError::Length`] unless `codes` is as long as `values`;
/// [`ClusterError::NotFinite`] with the index of the first NaN or infinity.
pub fn normalize_floats<T: Element>(
    values: &[T],
    dims: usize,
    codes: &mut [i8],
) -> Result<Sphere, ClusterError> {
    if codes.len() != values.len() {
        return Err(ClusterError::Length {
            expected: values.len(),
            found: codes.len(),
        });
    }
    Points::new(codes, dims)?;
    if let Some(index) = crate::number::first_not_finite(values) {
        return Err(ClusterError::NotFinite {
            index: index as u64,
        });
    }
    let dims = dims.max(1);
    let mut steepest = 0.0;
    for row in values.chunks_exact(dims) {
        let ratio = ratio(row, squared_length(row));
        if ratio > steepest {
            steepest = ratio;
        }
    }
    if steepest == 0.0 {
        steepest = 1.0;
    }
    for (row, codes) in values.chunks_exact(dims).zip(codes.chunks_exact_mut(dims)) {
        let length = squared_length(row);
        let factor = if length > 0.0 {
            127.0 / root::sqrt_f64(steepest * length)
        } else {
            0.0
        };
        for (x, code) in row.iter().zip(codes) {
            let scaled = round::half_away_f64(f64::from(x.to_f32()) * factor);
            *code = (scaled as i32).clamp(-127, 127) as i8;
        }
    }
    const FRACTION: u64 = 1 << 14;
    Ok(Sphere {
        // At most 127² · d · 2¹⁴, below 2⁴⁴.
        numerator: round::half_away_f64(16_129.0 / steepest * FRACTION as f64) as u64,
        denominator: FRACTION,
    })
}

fn squared_length<T: Element>(row: &[T]) -> f64 {
    let mut lanes = Lanes::<f64>::new();
    lanes.squares(row);
    lanes.total()
}

/// Returns the largest squared coordinate over the squared length; 0 for a row of zeros.
fn ratio<T: Element>(row: &[T], length: f64) -> f64 {
    let largest = row.iter().fold(0, |largest, x| {
        let magnitude = bits::magnitude(x.to_f32());
        if magnitude > largest {
            magnitude
        } else {
            largest
        }
    });
    let largest = f32::from_bits(largest);
    if length > 0.0 {
        product(largest, largest) / length
    } else {
        0.0
    }
}
