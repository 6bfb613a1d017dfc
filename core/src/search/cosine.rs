//! Cosines: ordered without a root, and rounded once.

use core::cmp::Ordering;

use super::Score;
use crate::number::lanes::product;
use crate::number::{bits, root};

/// The cosine of two integer rows as an exact ratio: `dot / √norms`.
///
/// Ordered exactly: first by sign, then by comparing `a_i² · n_j` with `a_j² · n_i` in 128 bits, where n is the
/// product of both squared lengths. Cosines of different queries can be compared too. A row or a query of zeros has
/// cosine 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct IntegerCosine {
    dot: i32,
    norms: u64,
}

/// The cosine 0.
impl Default for IntegerCosine {
    fn default() -> Self {
        Self { dot: 0, norms: 1 }
    }
}

impl IntegerCosine {
    /// Returns the cosine of two rows from their dot product and squared lengths.
    ///
    /// `dot²` should not exceed the product of both lengths. It never does if the norms are those of the rows.
    #[inline]
    pub fn new(dot: i32, query_norm: u32, row_norm: u32) -> Self {
        match u64::from(query_norm) * u64::from(row_norm) {
            0 => Self::default(),
            norms => Self { dot, norms },
        }
    }

    /// Returns the square with its sign, `dot · |dot| / norms`, within a relative error of 4 · 2⁻⁵³.
    #[inline]
    pub(super) fn signed_square(self) -> f64 {
        let square = self.square() as f64 / self.norms as f64;
        if self.dot < 0 { -square } else { square }
    }

    /// Returns dot².
    #[inline]
    fn square(self) -> u64 {
        let magnitude = u64::from(self.dot.unsigned_abs());
        // At most 2³¹ squared.
        magnitude * magnitude
    }
}

impl Score for IntegerCosine {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        let signs = self.dot.signum().cmp(&other.dot.signum());
        if signs != Ordering::Equal {
            return signs;
        }
        // Products of two 64-bit integers.
        let of_self = u128::from(self.square()) * u128::from(other.norms);
        let of_other = u128::from(other.square()) * u128::from(self.norms);
        if self.dot < 0 {
            of_other.cmp(&of_self)
        } else {
            of_self.cmp(&of_other)
        }
    }

    /// Returns `dot / √norms` rounded to nearest, ties to even, once.
    ///
    /// With dot² · 4^s in [2¹²⁴, 2¹²⁶) and norms below 2⁶⁴, ⌊√(dot² · 4^s / norms)⌋ has at least 30 bits: 24 to keep,
    /// and more for rounding. One extra last bit records if anything was cut off, so that the conversion sees no
    /// false ties. The remaining power of two is exact, since no cosine other than 0 is below 2⁻³².
    fn value(self) -> f32 {
        let square = u128::from(self.square());
        if square == 0 {
            return 0.0;
        }
        // At least 65 leading zeros, since the square has at most 63 bits; the shift is even.
        let shift = (square.leading_zeros() - 2) & !1;
        let scaled = square << shift;
        let norms = u128::from(self.norms.max(1));
        let quotient = scaled / norms;
        let root = quotient.isqrt();
        let cut = root * root != quotient || quotient * norms != scaled;
        // At most 64 bits: the root of a number below 2¹²⁶ has 63.
        let rounded = (root as u64) << 1 | u64::from(cut);
        let power = f32::from_bits((127 - (shift / 2 + 1)) << 23);
        let magnitude = rounded as f32 * power;
        if self.dot < 0 { -magnitude } else { magnitude }
    }

    /// Exact: with |threshold| = m · 2^e, compares dot² with m² · 4^e · norms in 128 bits.
    fn reaches(self, threshold: f32) -> bool {
        if threshold.is_nan() {
            return false;
        }
        let negative = threshold < 0.0;
        match (self.dot.signum(), negative) {
            (0, _) => threshold <= 0.0,
            (1, true) => true,
            (-1, false) => false,
            (1, false) => self.magnitude_against(threshold) != Ordering::Less,
            _ => self.magnitude_against(threshold) != Ordering::Greater,
        }
    }
}

impl IntegerCosine {
    /// Compares |self| with |threshold|. The threshold is not NaN, and the cosine is not 0.
    fn magnitude_against(self, threshold: f32) -> Ordering {
        let pattern = bits::magnitude(threshold);
        if pattern >= bits::INFINITE {
            return Ordering::Less;
        }
        let mantissa = u128::from(bits::mantissa(pattern));
        // Below 2⁴⁸ times below 2⁶⁴.
        let right = mantissa * mantissa * u128::from(self.norms);
        let left = u128::from(self.square());
        // A number that would be shifted out of 128 bits exceeds any number that fits.
        match 2 * (bits::shift(pattern) as i32 - 149) {
            up if up >= 0 && right.leading_zeros() < up.unsigned_abs() => Ordering::Less,
            up if up >= 0 => left.cmp(&(right << up)),
            down if left.leading_zeros() < down.unsigned_abs() => Ordering::Greater,
            down => (left << down.unsigned_abs()).cmp(&right),
        }
    }
}

/// The cosine of two float rows as its signed square in f64: `a·|a| / (n_q · n_r)`.
///
/// a, n_q and n_r are the dot product and both squared lengths. Each product is exact in f64, and the sums are in the
/// order of [`crate::number::lanes`]; they cannot overflow or vanish. A square orders like the cosine, so only
/// [`Score::value`] computes the root. A row or a query of zeros has cosine 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SignedSquare(f64);

impl SignedSquare {
    /// Returns the cosine of two rows from their dot product and squared lengths.
    #[inline]
    pub fn new(dot: f64, query_norm: f64, row_norm: f64) -> Self {
        let norms = query_norm * row_norm;
        if norms == 0.0 {
            return Self(0.0);
        }
        let magnitude = f64::from_bits(dot.to_bits() & !(1 << 63));
        Self(dot * magnitude / norms)
    }
}

impl Score for SignedSquare {
    #[inline]
    fn rank(&self, other: &Self) -> Ordering {
        // Neither is NaN, and −0 equals +0.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }

    /// Computes the root in f64, then rounds it to f32.
    fn value(self) -> f32 {
        if self.0 < 0.0 {
            -(root::sqrt_f64(-self.0) as f32)
        } else {
            root::sqrt_f64(self.0) as f32
        }
    }

    fn reaches(self, threshold: f32) -> bool {
        let square = product(threshold, threshold);
        self.0 >= if threshold < 0.0 { -square } else { square }
    }
}
