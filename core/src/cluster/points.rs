//! Points, and the sizes up to which every sum over them is exact.

use super::ClusterError;

/// Largest number of coordinates of a point: ‖c‖² − 2·x·c is at most 3 · 2¹⁴ · d, which fits an `i32` up to this d.
pub const MAX_DIMS: usize = 43_690;

/// Largest squared difference of two coordinates, 255².
pub(crate) const SQUARE: u64 = 65_025;

/// int8 points to cluster, row-major, in the caller's memory.
///
/// A point with weight w counts as w points. A point with weight 0 gets a label, but changes nothing.
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
    /// Number of points of positive weight.
    counted: usize,
    /// Largest weight.
    heaviest: u32,
}

impl<'a> Points<'a> {
    /// Uses `values` as points of `dims` coordinates. O(1).
    ///
    /// # Errors
    /// [`ClusterError::Empty`]; [`ClusterError::Ragged`]; [`ClusterError::Dims`] above [`MAX_DIMS`];
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
        // As u64, so that the comparison is meaningful on 32-bit machines too.
        if len as u64 >= u32::MAX as u64 {
            return Err(ClusterError::Points { points: len });
        }
        // 2³² points of 2¹⁶ · 43,690 each: Σ D² is below 2⁶⁴, so nothing can wrap without weights.
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

    /// Like [`Points::new`], with a weight per point. O(n).
    ///
    /// # Errors
    /// Those of [`Points::new`]; [`ClusterError::Length`] unless there is one weight per point;
    /// [`ClusterError::Empty`] if all are 0; [`ClusterError::Weight`] if Σw · 65,025 · d reaches 2⁶⁴. The inertia
    /// must stay below that. (A sum of coordinates, at most 128 · Σw, then fits 63 bits too.)
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
        // Fewer than 2³² weights, each below 2³².
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

    /// Returns the coordinates, row-major.
    pub const fn values(&self) -> &'a [i8] {
        self.values
    }

    /// Returns the number of coordinates per point, at least 1.
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the number of points, at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "there is always at least one point"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the weights, if there are any.
    pub const fn weights(&self) -> Option<&'a [u32]> {
        self.weights
    }

    /// Returns the sum of the weights; without weights, the number of points.
    pub const fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the number of points with a positive weight, at least 1.
    pub const fn counted(&self) -> usize {
        self.counted
    }

    /// Returns the largest weight of a point; 1 without weights.
    pub const fn heaviest(&self) -> u32 {
        self.heaviest
    }

    /// Returns the coordinates of a point; empty for an index after the last.
    pub fn row(&self, index: usize) -> &'a [i8] {
        let start = index.saturating_mul(self.dims);
        self.values
            .get(start..)
            .and_then(|rest| rest.get(..self.dims))
            .unwrap_or_default()
    }

    /// Returns the points one after another, each with its weight.
    #[inline]
    pub fn rows(&self) -> impl Iterator<Item = (&'a [i8], u32)> + use<'a> {
        let mut weights = self.weights.map(|weights| weights.iter());
        // `dims` is at least 1; the maximum only informs the compiler.
        self.values.chunks_exact(self.dims.max(1)).map(move |row| {
            let weight = match &mut weights {
                Some(weights) => weights.next().copied().unwrap_or(0),
                None => 1,
            };
            (row, weight)
        })
    }

    /// Returns `count` points (or as many as there are) from `first` on, with their weights.
    ///
    /// Totals such as [`Points::weight`] are those of the part. `None` if there are no such points.
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

    /// Checks a number of clusters.
    ///
    /// # Errors
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

    /// Fails with [`ClusterError::Length`] unless `found` is the number of points.
    pub(super) const fn check_length(&self, found: usize) -> Result<(), ClusterError> {
        if found != self.len {
            let expected = self.len;
            return Err(ClusterError::Length { expected, found });
        }
        Ok(())
    }

    /// Fails with [`ClusterError::Length`] unless there is one label per point, and with [`ClusterError::Index`] for
    /// a label of `count` or more.
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
