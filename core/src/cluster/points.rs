//! Points, and the sizes at which every sum about them stays exact.

use super::ClusterError;

/// The most coordinates a point may have: ‖c‖² − 2·x·c is at most 3 · 2¹⁴ · d, which fits an `i32` to here.
pub const MAX_DIMS: usize = 43_690;

/// The largest squared difference of two coordinates, 255².
pub(crate) const SQUARE: u64 = 65_025;

/// int8 points to cluster, row-major, in the caller's memory.
///
/// A weight of w makes a point count as w points, and a weight of 0 as none: it gets a label and moves nothing.
///
/// ```
/// use tercet_core::cluster::{ClusterError, Points};
///
/// let points = Points::new(&[0, 1, 10, 11, -3, 4], 2)?;
/// assert_eq!((points.len(), points.row(1)), (3, &[10, 11][..]));
/// assert_eq!(Points::new(&[1, 2, 3], 2).unwrap_err(), ClusterError::Ragged { len: 3, dims: 2 });
/// # Ok::<(), ClusterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points<'a> {
    values: &'a [i8],
    dims: usize,
    len: usize,
    weights: Option<&'a [u32]>,
    /// Σ w.
    weight: u64,
    /// Points of positive weight.
    counted: usize,
    /// The largest weight.
    heaviest: u32,
}

impl<'a> Points<'a> {
    /// Takes `values` as points of `dims` coordinates. O(1).
    ///
    /// # Errors
    /// [`ClusterError::Empty`], [`ClusterError::Ragged`], [`ClusterError::Dims`] above [`MAX_DIMS`],
    /// [`ClusterError::Points`] above 2³² − 2 points.
    pub const fn new(values: &'a [i8], dims: usize) -> Result<Self, ClusterError> {
        if values.is_empty() || dims == 0 {
            return Err(ClusterError::Empty);
        }
        if dims > MAX_DIMS {
            return Err(ClusterError::Dims { dims });
        }
        if !values.len().is_multiple_of(dims) {
            let len = values.len();
            return Err(ClusterError::Ragged { len, dims });
        }
        let len = values.len() / dims;
        // As u64, where the comparison means something on 32 bits too.
        if len as u64 >= u32::MAX as u64 {
            return Err(ClusterError::Points { points: len });
        }
        // 2³² points of 2¹⁶ · 43,690 each: Σ D² is below 2⁶⁴, so without weights nothing can wrap.
        Ok(Self {
            values,
            dims,
            len,
            weights: None,
            weight: len as u64,
            counted: len,
            heaviest: 1,
        })
    }

    /// As [`Points::new`], with a weight for each point. O(n).
    ///
    /// # Errors
    /// Those of [`Points::new`]; [`ClusterError::Length`] unless there is one weight a point;
    /// [`ClusterError::Empty`] when all are 0; [`ClusterError::Weight`] where Σw · 65,025 · d reaches 2⁶⁴, which the
    /// inertia must not (a sum of coordinates, at most 128 · Σw, then fits 63 bits too).
    pub fn weighted(
        values: &'a [i8],
        dims: usize,
        weights: &'a [u32],
    ) -> Result<Self, ClusterError> {
        let points = Self::new(values, dims)?;
        if weights.len() != points.len {
            return Err(ClusterError::Length {
                expected: points.len,
                found: weights.len(),
            });
        }
        // Fewer than 2³² weights below 2³².
        let weight = weights.iter().map(|&weight| u64::from(weight)).sum();
        let limit = u64::MAX / (SQUARE * dims as u64);
        let limit = limit.min(((1 << 63) - 1) / 128);
        if weight > limit {
            return Err(ClusterError::Weight {
                total: weight,
                limit,
            });
        }
        if weight == 0 {
            return Err(ClusterError::Empty);
        }
        Ok(Self {
            weights: Some(weights),
            weight,
            counted: weights.iter().filter(|&&weight| weight > 0).count(),
            heaviest: weights.iter().copied().max().unwrap_or(0),
            ..points
        })
    }

    /// The coordinates, row-major.
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    /// Coordinates of a point, at least 1.
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// How many points, at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one point"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The weights, where there are any.
    pub const fn weights(&self) -> Option<&'a [u32]> {
        self.weights
    }

    /// The sum of the weights; the number of points without them.
    pub const fn weight(&self) -> u64 {
        self.weight
    }

    /// How many points have a positive weight, at least 1.
    pub const fn counted(&self) -> usize {
        self.counted
    }

    /// The largest weight of a point; 1 without weights.
    pub const fn heaviest(&self) -> u32 {
        self.heaviest
    }

    /// The coordinates of a point; empty past the last.
    pub fn row(&self, index: usize) -> &'a [i8] {
        let start = index.saturating_mul(self.dims);
        self.values
            .get(start..)
            .and_then(|rest| rest.get(..self.dims))
            .unwrap_or_default()
    }

    /// The points one after another, each with its weight.
    #[inline]
    pub fn rows(&self) -> impl Iterator<Item = (&'a [i8], u32)> + use<'a> {
        let mut weights = self.weights.map(|weights| weights.iter());
        // `dims` is at least 1; the maximum only tells the compiler.
        self.values.chunks_exact(self.dims.max(1)).map(move |row| {
            let weight = match &mut weights {
                Some(weights) => weights.next().copied().unwrap_or(0),
                None => 1,
            };
            (row, weight)
        })
    }

    /// The points from `first` on, `count` of them or as many as there are, with their weights.
    ///
    /// Totals such as [`Points::weight`] are those of the part. `None` where that leaves none.
    pub fn part(&self, first: usize, count: usize) -> Option<Self> {
        let len = self.len.checked_sub(first)?.min(count);
        let values = self.values.get(first * self.dims..)?;
        let values = values.get(..len * self.dims)?;
        let whole = Self::new(values, self.dims).ok()?;
        let Some(weights) = self.weights else {
            return Some(whole);
        };
        let weights = weights.get(first..)?.get(..len)?;
        Some(Self {
            weights: Some(weights),
            weight: weights.iter().map(|&weight| u64::from(weight)).sum(),
            counted: weights.iter().filter(|&&weight| weight > 0).count(),
            heaviest: weights.iter().copied().max().unwrap_or(0),
            ..whole
        })
    }

    /// [`ClusterError::Clusters`] unless 1 ≤ `clusters` ≤ [`Points::counted`].
    pub const fn check_clusters(&self, clusters: usize) -> Result<(), ClusterError> {
        if clusters == 0 || clusters > self.counted {
            return Err(ClusterError::Clusters {
                clusters,
                points: self.counted,
            });
        }
        Ok(())
    }

    /// [`ClusterError::Length`] unless `found` is the number of points.
    pub(super) const fn check_length(&self, found: usize) -> Result<(), ClusterError> {
        if found != self.len {
            let expected = self.len;
            return Err(ClusterError::Length { expected, found });
        }
        Ok(())
    }

    /// [`ClusterError::Length`] unless there is a label a point, [`ClusterError::Index`] for one of `count` or more.
    pub(super) fn check_labels(&self, labels: &[u32], count: usize) -> Result<(), ClusterError> {
        self.check_length(labels.len())?;
        match labels.iter().find(|&&label| label as usize >= count) {
            Some(&label) => Err(ClusterError::Index {
                index: label as usize,
                count,
            }),
            None => Ok(()),
        }
    }
}
