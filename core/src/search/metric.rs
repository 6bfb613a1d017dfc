//! Metrics: they compute a score from a query and a row.

use super::{Bar, Hit, IntegerCosine, Larger, Score, SignedSquare, Smaller};
use crate::number::{self, Element, Lanes};

/// The metrics by name, for a choice at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MetricKind {
    /// [`Dot`].
    Dot,
    /// [`Cosine`].
    Cosine,
    /// [`SquaredL2`].
    SquaredL2,
}

impl MetricKind {
    /// Every metric.
    pub const ALL: [Self; 3] = [Self::Dot, Self::Cosine, Self::SquaredL2];

    /// Returns the name: `dot`, `cosine` or `l2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::Cosine => "cosine",
            Self::SquaredL2 => "l2",
        }
    }

    /// Returns the bytes of `count` hits of integer rows: see [`Hit::bytes`].
    pub const fn integer_hit_bytes(self, count: usize) -> usize {
        match self {
            Self::Dot => Hit::<<Dot as Metric>::Integer>::bytes(count),
            Self::Cosine => Hit::<<Cosine as Metric>::Integer>::bytes(count),
            Self::SquaredL2 => Hit::<<SquaredL2 as Metric>::Integer>::bytes(count),
        }
    }

    /// Returns the bytes of `count` hits of float rows: see [`Hit::bytes`].
    pub const fn float_hit_bytes(self, count: usize) -> usize {
        match self {
            Self::Dot => Hit::<<Dot as Metric>::Float>::bytes(count),
            Self::Cosine => Hit::<<Cosine as Metric>::Float>::bytes(count),
            Self::SquaredL2 => Hit::<<SquaredL2 as Metric>::Float>::bytes(count),
        }
    }
}

/// A measure of similarity over integer rows and over float rows.
///
/// Implemented by zero-sized types, so that the scan is compiled for each metric.
pub trait Metric: Copy + Default + core::fmt::Debug + Send + Sync + 'static {
    /// The score of integer rows.
    type Integer: Score;
    /// The score of float rows.
    type Float: Score;

    /// The metric's kind.
    const KIND: MetricKind;
    /// True if [`Metric::integer`] uses the squared lengths; if not, they may have any value.
    const INTEGER_NORMS: bool;
    /// The same for [`Metric::float`].
    const FLOAT_NORMS: bool;

    /// Returns the score of an int8 query and row of at most [`super::MAX_DIM`] values, from their dot product and
    /// squared lengths.
    fn integer(dot: i32, query_norm: u32, row_norm: u32) -> Self::Integer;

    /// Returns a test that every row passes whose [`Metric::integer`] ranks above `worst`. `query_norm` is the
    /// query's squared length. [`Bar::Open`] is always correct.
    fn bar(worst: &Self::Integer, query_norm: u32) -> Bar;

    /// Returns the same for every row whose [`Metric::integer`] reaches `threshold`, which is not NaN.
    fn bar_at(threshold: f32, query_norm: u32) -> Bar;

    /// Returns the score of a finite query and row of the same length, with squared lengths as from
    /// [`crate::number::sum_of_squares`].
    fn float<T: Element>(query: &[f32], row: &[T], query_norm: f64, row_norm: f64) -> Self::Float;

    /// Returns the same score from the sum that it needs, for engines that compute the sum themselves. For dot
    /// products and squared distances the sum is Σ q_i · r_i or Σ (q_i − r_i)², as [`number::dot`] and
    /// [`number::squared_distance`] compute it in f32, converted to f64. For cosines it is Σ q_i · r_i in f64.
    fn float_by_sum(sum: f64, query_norm: f64, row_norm: f64) -> Self::Float;
}

/// Σ q_i · r_i; larger is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dot;

/// Σ q_i · r_i divided by both lengths; larger is better, and the lengths have no influence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cosine;

/// Σ (q_i − r_i)², the squared Euclidean distance; smaller is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SquaredL2;

impl Metric for Dot {
    type Integer = Larger<i32>;
    type Float = Larger<f32>;

    const KIND: MetricKind = MetricKind::Dot;
    const INTEGER_NORMS: bool = false;
    const FLOAT_NORMS: bool = false;

    #[inline]
    fn integer(dot: i32, _: u32, _: u32) -> Larger<i32> {
        Larger(dot)
    }

    #[inline]
    fn bar(worst: &Larger<i32>, _: u32) -> Bar {
        Bar::Dot(worst.0)
    }

    #[inline]
    fn bar_at(threshold: f32, _: u32) -> Bar {
        // Every i32 is above a threshold that is below all of them; `as` saturates.
        if threshold <= i32::MIN as f32 {
            return Bar::Open;
        }
        let whole = threshold as i32;
        // f64 holds both exactly.
        let above = f64::from(whole) < f64::from(threshold);
        Bar::Dot(if above {
            whole
        } else {
            whole.saturating_sub(1)
        })
    }

    // Not inlined: a caller with several scans would hold as many sets of lanes.
    #[inline(never)]
    fn float<T: Element>(query: &[f32], row: &[T], _: f64, _: f64) -> Larger<f32> {
        // Their lengths are equal, so the sum exists.
        Larger(number::dot(query, row).unwrap_or(0.0))
    }

    #[inline]
    fn float_by_sum(sum: f64, _: f64, _: f64) -> Larger<f32> {
        // It was an f32.
        Larger(sum as f32)
    }
}

impl Metric for Cosine {
    type Integer = IntegerCosine;
    type Float = SignedSquare;

    const KIND: MetricKind = MetricKind::Cosine;
    const INTEGER_NORMS: bool = true;
    const FLOAT_NORMS: bool = true;

    #[inline]
    fn integer(dot: i32, query_norm: u32, row_norm: u32) -> IntegerCosine {
        IntegerCosine::new(dot, query_norm, row_norm)
    }

    #[inline]
    fn bar(worst: &IntegerCosine, query_norm: u32) -> Bar {
        Bar::cosine(worst.signed_square(), query_norm)
    }

    #[inline]
    fn bar_at(threshold: f32, query_norm: u32) -> Bar {
        let square = number::lanes::product(threshold, threshold);
        let signed = if threshold < 0.0 { -square } else { square };
        Bar::cosine(signed, query_norm)
    }

    // Not inlined: a caller with several scans would hold as many sets of lanes.
    #[inline(never)]
    fn float<T: Element>(query: &[f32], row: &[T], query_norm: f64, row_norm: f64) -> SignedSquare {
        let mut lanes = Lanes::<f64>::new();
        // Nothing is added if the lengths differ; here they are equal.
        let _ = lanes.products(query, row);
        Self::float_by_sum(lanes.total(), query_norm, row_norm)
    }

    #[inline]
    fn float_by_sum(sum: f64, query_norm: f64, row_norm: f64) -> SignedSquare {
        SignedSquare::new(sum, query_norm, row_norm)
    }
}

impl Metric for SquaredL2 {
    type Integer = Smaller<u32>;
    type Float = Smaller<f32>;

    const KIND: MetricKind = MetricKind::SquaredL2;
    const INTEGER_NORMS: bool = true;
    const FLOAT_NORMS: bool = false;

    /// ‖q‖² + ‖r‖² − 2·q·r. The steps may wrap but the result does not: it is at most 65,025 · d.
    #[inline]
    fn integer(dot: i32, query_norm: u32, row_norm: u32) -> Smaller<u32> {
        let lengths = query_norm.wrapping_add(row_norm);
        Smaller(lengths.wrapping_sub((dot as u32).wrapping_mul(2)))
    }

    #[inline]
    fn bar(worst: &Smaller<u32>, query_norm: u32) -> Bar {
        let below = worst.0;
        Bar::Distance { below, query_norm }
    }

    #[inline]
    fn bar_at(threshold: f32, query_norm: u32) -> Bar {
        let below = match threshold {
            none if none < 0.0 => 0,
            // Rounded up, and `as` saturates.
            all if all >= u32::MAX as f32 => return Bar::Open,
            some => (some as u32).saturating_add(1),
        };
        Bar::Distance { below, query_norm }
    }

    // Not inlined: a caller with several scans would hold as many sets of lanes.
    #[inline(never)]
    fn float<T: Element>(query: &[f32], row: &[T], _: f64, _: f64) -> Smaller<f32> {
        Smaller(number::squared_distance(query, row).unwrap_or(0.0))
    }

    #[inline]
    fn float_by_sum(sum: f64, _: f64, _: f64) -> Smaller<f32> {
        // It was an f32.
        Smaller(sum as f32)
    }
}
