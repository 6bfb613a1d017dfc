//! Clusters over the caller's slices, with k and d known at run time. [`Online`](super::Online) is built on them.

use core::num::NonZeroU32;

use super::{ClusterError, MAX_CAP, Nearest, Observation, Points, round};
use crate::arch::plain::squared_distance;

/// State of clusters besides sums, counts and centroids: the number of clusters that have a centroid, and the cap.
/// New ones are zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlineHead {
    /// Number of clusters that have a centroid.
    pub(super) used: u32,
    /// `None` means [`MAX_CAP`]. So new clusters are all zeros, and a `static` of them takes no flash.
    pub(super) cap: Option<NonZeroU32>,
}

impl OnlineHead {
    /// Returns the state of no clusters, with a cap of [`MAX_CAP`].
    pub const fn new() -> Self {
        Self { used: 0, cap: None }
    }

    pub(super) const fn cap(self) -> u32 {
        match self.cap {
            Some(cap) => cap.get(),
            None => MAX_CAP,
        }
    }
}

/// A read-only view of clusters: [`Online`](super::Online) in slices.
#[derive(Clone, Copy, Debug)]
pub struct OnlineRef<'a> {
    pub(super) dims: usize,
    pub(super) head: OnlineHead,
    pub(super) sums: &'a [i32],
    pub(super) counts: &'a [u32],
    pub(super) centroids: &'a [i8],
}

impl<'a> OnlineRef<'a> {
    /// Returns a view of clusters of `dims` coordinates; see [`OnlineMut::new`].
    ///
    /// # Errors
    /// Those of [`OnlineMut::new`].
    pub fn new(
        dims: usize,
        head: OnlineHead,
        sums: &'a [i32],
        counts: &'a [u32],
        centroids: &'a [i8],
    ) -> Result<Self, ClusterError> {
        check(dims, sums, counts, centroids)?;
        Ok(Self {
            dims,
            head,
            sums,
            counts,
            centroids,
        })
    }

    /// Returns the nearest centroid, the lowest of equal ones, and the squared distance to it; `None` while there are
    /// no clusters. O(k·d).
    ///
    /// # Errors
    /// [`ClusterError::Length`] unless `x` has d coordinates.
    pub fn predict(&self, x: &[i8]) -> Result<Option<Nearest>, ClusterError> {
        expect(self.dims, x.len())?;
        Ok(self.nearest(x))
    }

    /// Like [`OnlineRef::predict`], for a point of the correct length.
    #[inline]
    pub(super) fn nearest(&self, x: &[i8]) -> Option<Nearest> {
        let mut best: Option<Nearest> = None;
        let mut rest = self.centroids;
        for label in 0..self.head.used {
            let Some((centroid, others)) = rest.split_at_checked(self.dims) else {
                break;
            };
            let distance = squared_distance(x, centroid);
            if best.is_none_or(|best| distance < best.distance) {
                best = Some(Nearest { label, distance });
            }
            rest = others;
        }
        best
    }

    /// Returns the number of coordinates per point.
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the number of clusters that have a centroid.
    pub fn used(&self) -> usize {
        (self.head.used as usize).min(self.counts.len())
    }

    /// Returns the centroids of the clusters that have one, row-major: rounded means, halves away from zero.
    pub fn centroids(&self) -> &'a [i8] {
        let used = self.used().saturating_mul(self.dims);
        self.centroids.get(..used).unwrap_or(self.centroids)
    }

    /// Returns the k · d sums: the sum of each cluster's points, as far as they are not forgotten.
    pub const fn sums(&self) -> &'a [i32] {
        self.sums
    }

    /// Returns the k counts: the number of points in each sum.
    pub const fn counts(&self) -> &'a [u32] {
        self.counts
    }

    /// Returns the count at which a cluster's sum and count are halved.
    pub const fn cap(&self) -> u32 {
        self.head.cap()
    }
}

/// Clusters that follow a stream: [`Online`](super::Online) in slices, for example from an arena or from C code.
///
/// ```
/// use tercet_core::cluster::{OnlineHead, OnlineMut};
///
/// let (mut head, mut sums, mut counts) = (OnlineHead::new(), [0; 6], [0; 2]);
/// let mut centroids = [0; 6];
/// // Two clusters of three coordinates.
/// let mut clusters = OnlineMut::new(3, &mut head, &mut sums, &mut counts, &mut centroids)?;
/// assert!(clusters.observe(&[0, 0, 0])?.seed);
/// assert!(clusters.observe(&[90, 90, 90])?.seed);
/// assert_eq!(clusters.observe(&[4, 1, 0])?.distance, 17);
/// assert_eq!(clusters.view().centroids(), [2, 1, 0, 90, 90, 90]);
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
#[derive(Debug)]
pub struct OnlineMut<'a> {
    pub(super) dims: usize,
    pub(super) head: &'a mut OnlineHead,
    pub(super) sums: &'a mut [i32],
    pub(super) counts: &'a mut [u32],
    pub(super) centroids: &'a mut [i8],
}

impl<'a> OnlineMut<'a> {
    /// Continues clusters of `dims` coordinates from the state in these slices: k counts, k · d sums and centroids.
    /// All zeros are clusters without a point yet.
    ///
    /// Values that these functions did not write give wrong clusters, but nothing worse. O(1).
    ///
    /// # Errors
    /// Those of [`Points::new`] for the centroids; [`ClusterError::Length`].
    pub fn new(
        dims: usize,
        head: &'a mut OnlineHead,
        sums: &'a mut [i32],
        counts: &'a mut [u32],
        centroids: &'a mut [i8],
    ) -> Result<Self, ClusterError> {
        check(dims, sums, counts, centroids)?;
        Ok(Self {
            dims,
            head,
            sums,
            counts,
            centroids,
        })
    }

    /// Returns a read-only view of the clusters.
    #[inline]
    pub fn view(&self) -> OnlineRef<'_> {
        OnlineRef {
            dims: self.dims,
            head: *self.head,
            sums: self.sums,
            counts: self.counts,
            centroids: self.centroids,
        }
    }

    /// Restarts from k · d given centroids; see [`Online::with_centroids`](super::Online::with_centroids). The cap
    /// stays the same.
    ///
    /// # Errors
    /// [`ClusterError::Length`]; [`ClusterError::Weight`] for a weight of the cap or more.
    pub fn restart(&mut self, centroids: &[i8], weight: u32) -> Result<(), ClusterError> {
        expect(self.centroids.len(), centroids.len())?;
        let cap = self.view().cap();
        if weight >= cap {
            return Err(ClusterError::Weight {
                total: weight.into(),
                limit: u64::from(cap).saturating_sub(1),
            });
        }
        let to = self.sums.iter_mut().zip(self.centroids.iter_mut());
        for ((sum, own), &c) in to.zip(centroids) {
            // At least −128 · 2²⁴.
            *sum = i32::from(c).wrapping_mul(weight as i32);
            *own = c;
        }
        self.counts.fill(weight);
        self.head.used = self.counts.len() as u32;
        Ok(())
    }

    /// Like [`Online::set_cap`](super::Online::set_cap).
    ///
    /// # Errors
    /// [`ClusterError::Cap`] for a cap outside 2 to [`MAX_CAP`].
    pub fn set_cap(&mut self, cap: u32) -> Result<(), ClusterError> {
        if !(2..=MAX_CAP).contains(&cap) {
            return Err(ClusterError::Cap { cap });
        }
        self.head.cap = NonZeroU32::new(cap).filter(|cap| cap.get() < MAX_CAP);
        for label in 0..self.counts.len() {
            self.settle(label, cap, None);
        }
        Ok(())
    }

    /// Adds a point and returns the cluster that it joined; see [`Online::observe`](super::Online::observe). O(k·d),
    /// with d divisions.
    ///
    /// # Errors
    /// [`ClusterError::Length`] unless `x` has d coordinates.
    pub fn observe(&mut self, x: &[i8]) -> Result<Observation, ClusterError> {
        expect(self.dims, x.len())?;
        Ok(self.take_up(x))
    }

    /// Like [`OnlineMut::observe`], for a point of the correct length.
    #[inline]
    pub(super) fn take_up(&mut self, x: &[i8]) -> Observation {
        let view = self.view();
        let (found, cap, used) = (view.nearest(x), view.cap(), self.head.used);
        let (label, distance, seed) = match found {
            // Until all clusters have a centroid, a point that equals none of them is a seed. The members of a
            // cluster are all equal so far, so its centroid is still its seed.
            None => (used, 0, true),
            Some(near) if near.distance > 0 && (used as usize) < self.counts.len() => {
                (used, 0, true)
            }
            Some(near) => (near.label, near.distance, false),
        };
        self.head.used = used.wrapping_add(u32::from(seed));
        self.settle(label as usize, cap, Some(x));
        Observation {
            label,
            distance,
            seed,
        }
    }

    /// Adds a point to a cluster, halves its sum and count while the count is `cap` or more, and moves its centroid
    /// to the rounded mean. A centroid that never had a point does not move.
    #[inline]
    fn settle(&mut self, label: usize, cap: u32, x: Option<&[i8]>) {
        let start = label.wrapping_mul(self.dims);
        let row = start..start.wrapping_add(self.dims);
        let (Some(count), Some(sums), Some(centroid)) = (
            self.counts.get_mut(label),
            self.sums.get_mut(row.clone()),
            self.centroids.get_mut(row),
        ) else {
            return;
        };
        if let Some(x) = x {
            for (sum, &x) in sums.iter_mut().zip(x) {
                // The count was below the cap, so the sum holds at most 2²⁴ points.
                *sum = sum.wrapping_add(i32::from(x));
            }
            *count = count.wrapping_add(1);
        }
        while *count >= cap.max(2) {
            for sum in sums.iter_mut() {
                // Within 128 · count / 2, because the sum was within 128 · count.
                *sum = round::halved((*sum).into(), (*count).into()) as i32;
            }
            *count /= 2;
        }
        if *count > 0 {
            for (c, &sum) in centroid.iter_mut().zip(&*sums) {
                *c = round::rounded_mean(sum.into(), (*count).into());
            }
        }
    }
}

/// Checks the lengths of k clusters.
fn check(dims: usize, sums: &[i32], counts: &[u32], centroids: &[i8]) -> Result<(), ClusterError> {
    let clusters = Points::new(centroids, dims)?.len();
    expect(clusters, counts.len())?;
    expect(centroids.len(), sums.len())
}

pub(super) const fn expect(expected: usize, found: usize) -> Result<(), ClusterError> {
    if found != expected {
        return Err(ClusterError::Length { expected, found });
    }
    Ok(())
}
