//! Assigns points to their nearest centroid.

use tercet_core::cluster::{self, Points};

use crate::Status;
use crate::buffer::{In, Out, apart};

/// The nearest centroid of a point.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// Its index, the lowest one on ties.
    pub label: u32,
    /// The squared distance to it.
    pub distance: u32,
}

impl From<cluster::Nearest> for Nearest {
    fn from(found: cluster::Nearest) -> Self {
        Self {
            label: found.label,
            distance: found.distance,
        }
    }
}

/// Returns `a * b`, the number of a table's values, or an error if no address space can hold them.
pub(crate) fn table(a: usize, b: usize) -> Result<usize, Status> {
    a.checked_mul(b).ok_or(Status::Limit)
}

/// Finds the nearest of `k` centroids (k * d values, row by row) to a point of `d` coordinates, 1 to 43,690. O(k * d).
///
/// Returns TERCET_STATUS_EMPTY if k or d is 0, and TERCET_STATUS_LIMIT above those sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_nearest(
    point: *const i8,
    d: usize,
    centroids: *const i8,
    k: usize,
    found: *mut Nearest,
) -> Status {
    Status::of(|| {
        let (point, centroids) = (In::new(point, d)?, In::new(centroids, table(k, d)?)?);
        let found = Out::one(found)?;
        apart([found.span()], [point.span(), centroids.span()])?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let nearest = unsafe { cluster::nearest(point.slice(), centroids.slice())? };
        // SAFETY: as above.
        unsafe { found.set(nearest.into()) };
        Ok(())
    })
}

/// Computes, for each of `n` points (n * d values, row by row), the label of its nearest centroid, the lowest one on
/// ties, and the squared distance to it. O(n * k * d).
///
/// `labels` and `distances` hold n. `inertia`, the sum of the distances, may be null. Errors are those of
/// `tercet_nearest`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_assign(
    points: *const i8,
    n: usize,
    d: usize,
    centroids: *const i8,
    k: usize,
    labels: *mut u32,
    distances: *mut u32,
    inertia: *mut u64,
) -> Status {
    Status::of(|| {
        let (points, centroids) = (
            In::new(points, table(n, d)?)?,
            In::new(centroids, table(k, d)?)?,
        );
        let (labels, distances) = (Out::new(labels, n)?, Out::new(distances, n)?);
        let inertia = Out::optional(inertia)?;
        apart(
            [labels.span(), distances.span(), inertia.span()],
            [points.span(), centroids.span()],
        )?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (points, centroids) = unsafe { (points.slice(), centroids.slice()) };
        // SAFETY: as above.
        let (labels, distances) = unsafe { (labels.slice(), distances.slice()) };
        let points = Points::new(points, d)?;
        let sum = cluster::predict(&points, centroids, labels, distances)?;
        // SAFETY: as above.
        unsafe { inertia.set(sum) };
        Ok(())
    })
}
