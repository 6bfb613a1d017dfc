//! Summaries of clusters: size, spread and representative point.

use super::{ClusterError, Points};

/// Summary of one cluster. Points of weight 0 are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Summary {
    /// Number of points.
    pub count: u64,
    /// Sum of their weights; without weights the same as `count`.
    pub weight: u64,
    /// Σ w·D², the cluster's share of the inertia.
    pub inertia: u64,
    /// Largest squared distance of a point to the centroid.
    pub squared_radius: u32,
    /// The point nearest to the centroid, the lowest index of equal ones; `None` if the cluster is empty.
    ///
    /// With its cluster's weight it represents the cluster. The k such points are a small data set that can replace
    /// the large one, and each is one of the original points.
    pub representative: Option<Representative>,
}

/// The point that represents a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Representative {
    /// Index of the point.
    pub index: usize,
    /// Squared distance between the point and the centroid.
    pub distance: u32,
}

impl Summary {
    /// Adds the summary of the same cluster over other points. Exact in any order.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.weight += other.weight;
        self.inertia = self.inertia.saturating_add(other.inertia);
        self.squared_radius = self.squared_radius.max(other.squared_radius);
        if let Some(found) = other.representative {
            let nearer =
                |kept: Representative| (found.distance, found.index) < (kept.distance, kept.index);
            if self.representative.is_none_or(nearer) {
                self.representative = Some(found);
            }
        }
    }
}

/// Fills `out`, one summary per cluster, from every point's label and squared distance. O(n + k).
///
/// # Errors
/// [`ClusterError::Length`] unless there are n labels and n distances; [`ClusterError::Index`] for a label of
/// `out.len()` or more.
///
/// ```
/// use tercet_core::cluster::{Points, Summary, predict, summarize};
///
/// let points = Points::new(&[0, 1, 2, 50, 52], 1)?;
/// let (mut labels, mut distances) = ([0; 5], [0; 5]);
/// predict(&points, &[1, 50], &mut labels, &mut distances)?;
/// let mut clusters = [Summary::default(); 2];
/// summarize(&points, &labels, &distances, &mut clusters)?;
/// assert_eq!((clusters[0].count, clusters[0].inertia), (3, 2));
/// assert_eq!((clusters[1].squared_radius, clusters[1].representative.unwrap().index), (4, 3));
/// # Ok::<(), tercet_core::cluster::ClusterError>(())
/// ```
pub fn summarize(
    points: &Points<'_>,
    labels: &[u32],
    distances: &[u32],
    out: &mut [Summary],
) -> Result<(), ClusterError> {
    points.check_labels(labels, out.len())?;
    points.check_length(distances.len())?;
    out.fill(Summary::default());
    let state = labels.iter().zip(distances);
    for (index, ((_, weight), (&label, &distance))) in points.rows().zip(state).enumerate() {
        if weight == 0 {
            continue;
        }
        let point = Summary {
            count: 1,
            weight: weight.into(),
            inertia: u64::from(weight) * u64::from(distance),
            squared_radius: distance,
            representative: Some(Representative { index, distance }),
        };
        if let Some(cluster) = out.get_mut(label as usize) {
            cluster.merge(&point);
        }
    }
    Ok(())
}
